"""Spell every attribute, metric, reason and finding name once."""

from __future__ import annotations

from typing import Final

UNMATCHED: Final = "unmatched"
OVERFLOW: Final = "overflow"  # label value of what is beyond the label budget
VARIANT_FORM: Final = r"[\w.:/@+-]{1,64}"  # what a deployer may call a variant for it to be a label value
VARIANT_WORDS: Final = "1 to 64 letters, digits and _.:/@+-"  # the same for people

# Why a milestone is not reached.
UNUSED: Final = "unused"
OUT_OF_ORDER: Final = "out_of_order"
FABRICATED: Final = "fabricated"
MISSING_FIELD: Final = "missing_field"
CUT_OFF: Final = "cut_off"
NO_CONTENT: Final = "no_content"

# Findings on a trajectory; ``fabricated`` and ``unused`` are spelled above.
LOOP: Final = "loop"
STUCK: Final = "stuck"
TRAP: Final = "trap"
HALLUCINATED_SUCCESS: Final = "hallucinated_success"

# Attributes of our own on spans and resources.
REACH_TASK: Final = "reach.task"
REACH_VARIANT: Final = "reach.variant"
REACH_RUN_ID: Final = "reach.run.id"
RUN_ID_PREFIX: Final = "reach-"  # of the ids that reach_otel.run() makes, which tells them from a conversation's

# What this package itself sends about a run that has ended; never read back as steps of it.
EVALUATION_SCOPE: Final = "reach_otel.evaluation"
EVALUATE_SPAN: Final = "reach.evaluate"
EVALUATION_RESULT_EVENT: Final = "gen_ai.evaluation.result"
EVALUATION_NAME: Final = "gen_ai.evaluation.name"
EVALUATION_SCORE_VALUE: Final = "gen_ai.evaluation.score.value"
EVALUATION_SCORE_LABEL: Final = "gen_ai.evaluation.score.label"
EVALUATION_EXPLANATION: Final = "gen_ai.evaluation.explanation"

# Scores: names of evaluations and attributes of the span alike. Beside them, what a trace store is searched by.
REACH_DEPTH: Final = "reach.depth"
REACH_PURITY: Final = "reach.purity"
REACH_DIGESTION: Final = "reach.digestion"
REACH_SCORE: Final = "reach.score"
REACH_HIGH_LAYER: Final = "reach.high_layer"
REACH_AGENT: Final = "reach.agent"
REACH_OUTCOME: Final = "reach.outcome"
REACH_COVERAGE: Final = "reach.coverage"
REACH_HIGH_RISK: Final = "reach.high_risk"
REACH_BREAK_LEVEL: Final = "reach.break_point.level"
REACH_BREAK_REASON: Final = "reach.break_point.reason"
REACH_FINDINGS: Final = "reach.findings"
REACH_MILESTONES_REACHED: Final = "reach.milestones.reached"
REACH_MILESTONES_PASSED: Final = "reach.milestones.passed"
REACH_MILESTONES_MISSED: Final = "reach.milestones.missed"
REACH_MILESTONE_STATE: Final = "reach.milestone.{}.state"  # of one milestone, by its id
REACH_FINDING: Final = "reach.finding.{}"  # true, by the finding's name

# What hand instrumentation sets beside the attributes of the conventions.
GEN_AI_TOOL_TYPE: Final = "gen_ai.tool.type"
REACH_PLAN: Final = "reach.plan"  # on a span of operation "plan": JSON list of {tool, inputs, depends_on}

# Every finding that SPEC section 7 names: the closed set of the label ``finding``.
FINDINGS: Final = (
    FABRICATED,
    UNUSED,
    LOOP,
    STUCK,
    TRAP,
    "strategic_detour",
    "reach_failure",
    "made_up_for_missing",
    "gave_up",
    "error_as_answer",
    HALLUCINATED_SUCCESS,
    "phantom_delivery",
    "planning_error",
    "execution_error",
    "ignored_result",
)

# Metrics: how far runs get.
RUNS_TOTAL: Final = "reach_runs_total"
RUNS_ACTIVE: Final = "reach_runs_active"
RUN_DEPTH_RATIO: Final = "reach_run_depth_ratio"
RUN_PURITY_RATIO: Final = "reach_run_purity_ratio"
RUN_DIGESTION_RATIO: Final = "reach_run_digestion_ratio"
RUN_SCORE_RATIO: Final = "reach_run_score_ratio"
RUN_DURATION_SECONDS: Final = "reach_run_duration_seconds"
HIGH_LAYER_EXPECTED_TOTAL: Final = "reach_high_layer_expected_total"
HIGH_LAYER_REACHED_TOTAL: Final = "reach_high_layer_reached_total"
MILESTONE_EXPECTED_TOTAL: Final = "reach_milestone_expected_total"
MILESTONE_REACHED_TOTAL: Final = "reach_milestone_reached_total"
MILESTONE_FIRST_REACH_ACTIONS: Final = "reach_milestone_first_reach_actions"
MILESTONE_FIRST_REACH_SECONDS: Final = "reach_milestone_first_reach_seconds"
AT_K_EXPECTED_TOTAL: Final = "reach_at_k_expected_total"
AT_K_REACHED_TOTAL: Final = "reach_at_k_reached_total"
LEVEL_RUNS_TOTAL: Final = "reach_level_runs_total"
LEVEL_PASSED_TOTAL: Final = "reach_level_passed_total"
BREAK_POINTS_TOTAL: Final = "reach_break_points_total"
COVERAGE_EXPECTED_TOTAL: Final = "reach_coverage_expected_total"
COVERAGE_REACHED_TOTAL: Final = "reach_coverage_reached_total"

# Metrics: what a task declares, for rules and panels to compare with.
TIER_WEIGHT: Final = "reach_tier_weight"
DURATION_LIMIT_SECONDS: Final = "reach_duration_limit_seconds"

# Metrics: what agents do on the way.
ACTIONS_TOTAL: Final = "reach_actions_total"
OBSTACLES_TOTAL: Final = "reach_obstacles_total"
FINDINGS_TOTAL: Final = "reach_findings_total"
TOKENS_TOTAL: Final = "reach_tokens_total"
COST_DOLLARS_TOTAL: Final = "reach_cost_dollars_total"
TOOL_CALLS_TOTAL: Final = "reach_tool_calls_total"
TOOL_DURATION_SECONDS: Final = "reach_tool_duration_seconds"
MODEL_DURATION_SECONDS: Final = "reach_model_duration_seconds"
HANDOFFS_TOTAL: Final = "reach_handoffs_total"
TIMEOUTS_TOTAL: Final = "reach_timeouts_total"
VIOLATIONS_TOTAL: Final = "reach_violations_total"
SENSITIVE_TOTAL: Final = "reach_sensitive_total"

# Metrics: runs that are still going.
LIVE_RUNS: Final = "reach_live_runs"
LIVE_DEPTH_SUM: Final = "reach_live_depth_sum"
LIVE_MILESTONE_REACHED: Final = "reach_live_milestone_reached"
LIVE_STUCK_RUNS: Final = "reach_live_stuck_runs"

# Metrics: the scorer's own health.
SCORER_QUEUE_SPANS: Final = "reach_scorer_queue_spans"
SCORER_SPANS_RECEIVED_TOTAL: Final = "reach_scorer_spans_received_total"
SCORER_SPANS_DROPPED_TOTAL: Final = "reach_scorer_spans_dropped_total"
SCORER_LATE_SPAN_AGE_SECONDS: Final = "reach_scorer_late_span_age_seconds"
SCORER_DUPLICATES_TOTAL: Final = "reach_scorer_duplicates_total"
SCORER_RUNS_EVICTED_TOTAL: Final = "reach_scorer_runs_evicted_total"
SCORER_RUNS_MERGED_TOTAL: Final = "reach_scorer_runs_merged_total"
SCORER_INCOMPLETE_RUNS_TOTAL: Final = "reach_scorer_incomplete_runs_total"
SCORER_ODD_SPANS_TOTAL: Final = "reach_scorer_odd_spans_total"
SCORER_CONDITION_FAULTS_TOTAL: Final = "reach_scorer_condition_faults_total"
SCORER_LAG_SECONDS: Final = "reach_scorer_lag_seconds"
SCORER_ERRORS_TOTAL: Final = "reach_scorer_errors_total"
SCORER_LABEL_OVERFLOW_TOTAL: Final = "reach_scorer_label_overflow_total"
SCORER_BUILD_INFO: Final = "reach_scorer_build_info"
SERVICE_REQUESTS_TOTAL: Final = "reach_service_requests_total"
SERVICE_INFLIGHT_BYTES: Final = "reach_service_inflight_bytes"
SERVICE_QUEUE_BYTES: Final = "reach_service_queue_bytes"
SERVICE_COMMIT_SECONDS: Final = "reach_service_commit_seconds"
SERVICE_JOURNAL_ERRORS_TOTAL: Final = "reach_service_journal_errors_total"
SERVICE_UNJOURNALLED_SPANS_TOTAL: Final = "reach_service_unjournalled_spans_total"
SERVICE_DATABASE_BYTES: Final = "reach_service_database_bytes"
SERVICE_READY: Final = "reach_service_ready"

# Attributes, events and kinds of the dialects that reach_otel.span reads, by the family which defines them.

# OpenTelemetry GenAI, MCP and general conventions.
OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
SYSTEM: Final = "gen_ai.system"
GEN_AI_AGENT_NAME: Final = "gen_ai.agent.name"
GEN_AI_AGENT_DESCRIPTION: Final = "gen_ai.agent.description"
GEN_AI_WORKFLOW_NAME: Final = "gen_ai.workflow.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
GEN_AI_TOOL_NAME: Final = "gen_ai.tool.name"
GEN_AI_TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
GEN_AI_TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
GEN_AI_TOOL_RESULT: Final = "gen_ai.tool.call.result"
GEN_AI_TOOL_STATUS: Final = "gen_ai.tool.status"
GEN_AI_TASK_STATUS: Final = "gen_ai.task.status"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"
USAGE_INPUT: Final = "gen_ai.usage.input_tokens"
USAGE_OUTPUT: Final = "gen_ai.usage.output_tokens"
USAGE_PROMPT: Final = "gen_ai.usage.prompt_tokens"
USAGE_COMPLETION: Final = "gen_ai.usage.completion_tokens"
USAGE_CACHED: Final = "gen_ai.usage.cache_read.input_tokens"
USAGE_CACHED_OLD: Final = "gen_ai.usage.cache_read_input_tokens"
USAGE_CACHED_DETAIL: Final = "gen_ai.usage.details.cache_read_tokens"
USAGE_REASONING: Final = "gen_ai.usage.reasoning.output_tokens"
USAGE_REASONING_OLD: Final = "gen_ai.usage.reasoning_tokens"
USAGE_REASONING_DETAIL: Final = "gen_ai.usage.details.reasoning_tokens"
AGGREGATED_INPUT: Final = "gen_ai.aggregated_usage.input_tokens"
AGGREGATED_OUTPUT: Final = "gen_ai.aggregated_usage.output_tokens"
AGGREGATED_CACHED: Final = "gen_ai.aggregated_usage.cache_read.input_tokens"
AGGREGATED_REASONING: Final = "gen_ai.aggregated_usage.details.reasoning_tokens"
HANDOFF_TO: Final = "gen_ai.handoff.to_agent"
RETRIEVAL_QUERY: Final = "gen_ai.retrieval.query.text"
RETRIEVAL_DOCUMENTS: Final = "gen_ai.retrieval.documents"
DATA_SOURCE_ID: Final = "gen_ai.data_source.id"
MCP_METHOD: Final = "mcp.method.name"
MCP_TOOL_NAME: Final = "mcp.tool.name"
ERROR_TYPE: Final = "error.type"
EXCEPTION_EVENT: Final = "exception"
EXCEPTION_TYPE: Final = "exception.type"
EXCEPTION_MESSAGE: Final = "exception.message"
EVENT_NAME: Final = "event.name"
GEN_AI_EVENTS: Final = "gen_ai."  # what the names of log records begin with that carry messages
REDACTION_MASKED: Final = "redaction.masked.count"  # summaries of the Collector's redaction processor
REDACTION_BODY_MASKED: Final = "redaction.body.masked.count"
SERVICE_NAME: Final = "service.name"
SERVICE_VERSION: Final = "service.version"

# Messages as span events or log records.
EVENT_SYSTEM: Final = "gen_ai.system.message"
EVENT_USER: Final = "gen_ai.user.message"
EVENT_ASSISTANT: Final = "gen_ai.assistant.message"
EVENT_TOOL: Final = "gen_ai.tool.message"
EVENT_CHOICE: Final = "gen_ai.choice"
EVENT_PROMPT: Final = "gen_ai.content.prompt"
EVENT_COMPLETION: Final = "gen_ai.content.completion"
EVENT_PROMPT_TEXT: Final = "gen_ai.prompt"
EVENT_COMPLETION_TEXT: Final = "gen_ai.completion"

# OpenInference.
OI_KIND: Final = "openinference.span.kind"
OI_AGENT_NAME: Final = "agent.name"
OI_NODE_ID: Final = "graph.node.id"
OI_NODE_NAME: Final = "graph.node.name"
OI_TOOL_NAME: Final = "tool.name"
OI_TOOL_ID: Final = "tool.id"
OI_TOOL_CALL_ID: Final = "tool_call.id"
OI_TOOL_CALL_ID_OLD: Final = "tool.call_id"
OI_TOOL_PARAMETERS: Final = "tool.parameters"
OI_TOOL_STATUS: Final = "tool.status"
OI_INPUT: Final = "input.value"
OI_OUTPUT: Final = "output.value"
OI_METADATA: Final = "metadata"
OI_SESSION: Final = "session.id"
OI_MODEL: Final = "llm.model_name"
OI_FINISH: Final = "llm.finish_reason"
OI_PROMPT: Final = "llm.token_count.prompt"
OI_COMPLETION: Final = "llm.token_count.completion"
OI_CACHED: Final = "llm.token_count.prompt_details.cache_read"
OI_REASONING: Final = "llm.token_count.completion_details.reasoning"
OI_MESSAGES: Final = "llm."
OI_INPUT_MESSAGES: Final = "llm.input_messages."
OI_OUTPUT_MESSAGES: Final = "llm.output_messages."
OI_DOCUMENTS: Final = "retrieval.documents."

# OpenLLMetry, new and old.
TL_KIND: Final = "traceloop.span.kind"
TL_ENTITY: Final = "traceloop.entity.name"
TL_INPUT: Final = "traceloop.entity.input"
TL_OUTPUT: Final = "traceloop.entity.output"
TL_WORKFLOW: Final = "traceloop.workflow.name"
TL_THREAD: Final = "traceloop.association.properties.thread_id"
TL_SESSION: Final = "traceloop.association.properties.session_id"
TL_AGENT: Final = "traceloop.association.properties.lc_agent_name"
TL_REQUEST: Final = "llm.request.type"
TL_PROMPT: Final = "gen_ai.prompt."
TL_COMPLETION: Final = "gen_ai.completion."

# Frameworks' own.
ADK_PREFIX: Final = "gcp.vertex.agent."
ADK_EVENT: Final = "gcp.vertex.agent.event_id"
ADK_INVOCATION: Final = "gcp.vertex.agent.invocation_id"
ADK_SESSION: Final = "gcp.vertex.agent.session_id"
ADK_TOOL_ARGUMENTS: Final = "gcp.vertex.agent.tool_call_args"
ADK_TOOL_RESPONSE: Final = "gcp.vertex.agent.tool_response"
ADK_REQUEST: Final = "gcp.vertex.agent.llm_request"
ADK_RESPONSE: Final = "gcp.vertex.agent.llm_response"
PYDANTIC_AGENT: Final = "agent_name"
PYDANTIC_MODEL: Final = "model_name"
PYDANTIC_ARGUMENTS: Final = "tool_arguments"
PYDANTIC_RESULT: Final = "tool_response"
PYDANTIC_MESSAGES: Final = "pydantic_ai.all_messages"
PYDANTIC_MESSAGES_OLD: Final = "all_messages_events"
PYDANTIC_FINAL: Final = "final_result"
CREW_NAME: Final = "crewai.crew.name"
CREW_ID: Final = "crewai.crew.id"
CREW_ROLE: Final = "crewai.agent.role"
HAYSTACK_COMPONENT: Final = "haystack.component.type"
HAYSTACK_COMPONENT_INPUT: Final = "haystack.component.input"
HAYSTACK_COMPONENT_OUTPUT: Final = "haystack.component.output"
HAYSTACK_RUN: Final = "haystack.agent.run"
HAYSTACK_LLM: Final = "haystack.agent.step.llm"
HAYSTACK_TOOL: Final = "haystack.agent.step.tool"
HAYSTACK_TOOL_NAME: Final = "haystack.tool.name"
HAYSTACK_TOOL_ERROR: Final = "haystack.tool.error"
HAYSTACK_TOOL_INPUT: Final = "haystack.agent.step.tool.input"
HAYSTACK_TOOL_OUTPUT: Final = "haystack.agent.step.tool.output"
HAYSTACK_LLM_INPUT: Final = "haystack.agent.step.llm.input"
HAYSTACK_LLM_OUTPUT: Final = "haystack.agent.step.llm.output"
HAYSTACK_AGENT_INPUT: Final = "haystack.agent.input"
HAYSTACK_AGENT_OUTPUT: Final = "haystack.agent.output"
