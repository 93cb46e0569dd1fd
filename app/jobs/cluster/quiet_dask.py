"""Dask's own log has every step, and the parameters of tasks, which may be personal data. Ours has what an operator can
act on."""

import logging

import dask.config

_UNUSED = {
    # Nobody looks at these, and they take as much time as small tasks do.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.diagnostics.nvml": False,
}


def quiet_dask() -> None:
    dask.config.set(_UNUSED)
    # Some of its loggers have a level of their own.
    known = [name for name in logging.root.manager.loggerDict if name.startswith("distributed.")]
    for name in ("distributed", "tornado", *known):
        logging.getLogger(name).setLevel(logging.CRITICAL)
