# The image of every node of a cluster, and of a run on one machine:
#   docker build -t cogeval .
#   docker run --rm --shm-size=256m -v cogeval-runs:/runs cogeval run run.root=/runs
# The base is pinned by tag. To pin it by digest too, so that a build next year has the same bytes, append what
#   docker buildx imagetools inspect python:3.11.14-slim-bookworm --format '{{.Manifest.Digest}}'
# prints: PYTHON=3.11.14-slim-bookworm@sha256:...
ARG PYTHON=3.11.14-slim-bookworm

FROM python:${PYTHON} AS build
WORKDIR /src
COPY requirements.lock pyproject.toml README.md LICENSE ./
COPY cogeval cogeval
COPY conf conf
# The lock's versions of what cogeval needs, without the tools of its developers.
RUN sed 's/\[[a-z,-]*\]//' requirements.lock > constraints.txt \
    && python -m venv /opt/venv \
    && PIP_CONSTRAINT=/src/constraints.txt /opt/venv/bin/pip install --no-cache-dir ".[llm,jobs]"

FROM python:${PYTHON}
# KubeRay asks its nodes by wget whether they are well; Debian keeps no old versions to pin.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --no-install-recommends -y wget \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --create-home cogeval \
    && install --directory --owner=cogeval --group=cogeval /runs
COPY --from=build --chown=root:root /opt/venv /opt/venv
COPY --chown=root:root jobs /opt/cogeval/jobs
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    RAY_USAGE_STATS_ENABLED=0
USER 10001:10001
WORKDIR /home/cogeval
ENTRYPOINT ["cogeval"]
