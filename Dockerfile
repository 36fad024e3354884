# reach-otel as an image: the service, the demo and the other commands, without root and without tools to build with.
#
#   docker build --tag reach-otel .
#   docker run --rm --init --no-healthcheck reach-otel demo --plain
#   docker run --rm --init --read-only --tmpfs /tmp --cap-drop ALL --publish 127.0.0.1:4318:4318 \
#     --env REACH_SERVE_INGEST_TOKEN --env REACH_SERVE_READ_TOKEN \
#     --volume ./tasks:/tasks:ro --volume reach:/var/lib/reach-otel reach-otel serve --host 0.0.0.0 --task /tasks
#
# The base is pinned by its full version. A digest would pin one build of that version and so keep its Debian fixes out
# until somebody changes it here; who wants that anyhow names one, as `docker buildx imagetools inspect` prints it:
#   docker build --build-arg PYTHON_IMAGE=python:3.13.16-slim-trixie@sha256:... .
ARG PYTHON_IMAGE=python:3.13.16-slim-trixie


FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_NO_COMPILE=1 \
    PIP_ROOT_USER_ACTION=ignore \
    SOURCE_DATE_EPOCH=315532800
WORKDIR /build
# What the package needs comes first: this layer is built anew only when one of these versions changes.
COPY tools/image-requirements.txt ./
RUN python -m venv --without-pip /opt/reach-otel \
    && python -m pip --python /opt/reach-otel/bin/python install --only-binary :all: --requirement image-requirements.txt
COPY LICENSE README.md pyproject.toml ./
COPY reach_otel reach_otel
# `pip check` holds the pinned versions to what the package itself asks for. Bytecode that is not checked against its
# source does not depend on file times, and is never written again: the root file system may be read-only.
RUN python -m pip wheel --no-deps --wheel-dir dist . \
    && python -m pip --python /opt/reach-otel/bin/python install --no-deps dist/*.whl \
    && python -m pip --python /opt/reach-otel/bin/python check \
    && /opt/reach-otel/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/reach-otel/lib


FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="reach-otel" \
      org.opencontainers.image.description="Live reach scores of LLM agents from OpenTelemetry spans" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="docker.io/library/python:3.13.16-slim-trixie"
# The number is fixed, so that owners of volumes are the same everywhere; it is also that of the Collector's image.
RUN python -m pip uninstall --yes --root-user-action ignore pip \
    && groupadd --gid 10001 reach \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/reach-otel --shell /usr/sbin/nologin reach \
    && install --directory --owner 10001 --group 10001 --mode 0700 /var/lib/reach-otel
COPY --from=build /opt/reach-otel /opt/reach-otel
ENV PATH=/opt/reach-otel/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001:10001
# The service keeps its database in the working folder: mount a volume here to keep it, and /tmp when the root is
# read-only.
WORKDIR /var/lib/reach-otel
EXPOSE 4317 4318
# For `serve` on its usual port. No proxy is asked, whatever the environment says.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-IS", "-c", "from http.client import HTTPConnection as C; c = C('127.0.0.1', 4318, timeout=4); c.request('GET', '/healthz'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["reach-otel"]
CMD ["--help"]
