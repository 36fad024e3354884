"""Run a small fleet of ticket agents, good ones and bad ones, whose runs are scored like those of any user."""
