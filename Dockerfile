ARG PYTHON_IMAGE=python:3.11-slim
FROM ${PYTHON_IMAGE} AS build
# requirements-cluster.lock for JOBS_ENGINE=dask://…, see docs/jobs-cluster.md.
ARG LOCK=requirements.lock
# As it runs: Python uses compiled files of this level only.
ENV PYTHONOPTIMIZE=1
COPY ${LOCK} /requirements.lock
COPY scripts/machine/compile_libraries.py /compile_libraries.py
RUN python -m venv /venv \
    && /venv/bin/python -m pip install --no-cache-dir --require-hashes --only-binary :all: -r /requirements.lock \
    && /venv/bin/python -m pip uninstall --yes pip setuptools \
    && /venv/bin/python /compile_libraries.py

FROM ${PYTHON_IMAGE}
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin yaninda \
    && install --directory --owner yaninda --mode 0700 /srv/jobs-tls /srv/roster /srv/audit-heads
WORKDIR /srv
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PYTHONOPTIMIZE=1 HOST=0.0.0.0 PORT=8080 LOG_JSON=true
# A container may not write: what is not compiled here would be compiled at each start, Python's own library too.
RUN python -m compileall -q -x /tests?/ "$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"
COPY --from=build /venv /venv
COPY app app
COPY migrations migrations
RUN python -m compileall -q app migrations
USER yaninda
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['PORT'] + '/readyz', timeout=4)"]
ENTRYPOINT ["python", "-m", "app"]
CMD ["serve"]
