ARG PYTHON_IMAGE=python:3.11-slim
FROM ${PYTHON_IMAGE} AS build
# requirements-cluster.lock for JOBS_ENGINE=dask://…, see docs/jobs-cluster.md.
ARG LOCK=requirements.lock
COPY ${LOCK} /requirements.lock
RUN python -m venv /venv \
    && /venv/bin/python -m pip install --no-cache-dir --require-hashes --only-binary :all: -r /requirements.lock \
    && /venv/bin/python -m pip uninstall --yes pip setuptools

FROM ${PYTHON_IMAGE}
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin yaninda \
    && install --directory --owner yaninda --mode 0700 /srv/jobs-tls /srv/roster /srv/audit-heads
WORKDIR /srv
COPY --from=build /venv /venv
COPY app app
COPY migrations migrations
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PYTHONOPTIMIZE=1 HOST=0.0.0.0 PORT=8080 LOG_JSON=true
USER yaninda
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['PORT'] + '/readyz', timeout=4)"]
ENTRYPOINT ["python", "-m", "app"]
CMD ["serve"]
