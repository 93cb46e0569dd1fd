"""A scheduler or a worker as a process of its own: `python -m tests.support.cluster_process ROLE ARGUMENTS-AS-JSON`.

Imports nothing at its top, because each process that runs scripts imports this module, too.
"""

import sys


def main(role: str, arguments: str) -> None:
    import asyncio
    import json
    import signal
    from pathlib import Path
    from typing import Any

    from app.foundation.logs import configure_logs
    from app.foundation.parent import end_with_parent
    from app.jobs.cluster.cluster_roles import serve_scheduler, serve_worker
    from app.jobs.cluster.tls_files import TlsFiles
    from app.jobs.engine.options import EngineOptions

    end_with_parent(signal.SIGKILL)
    configure_logs("INFO", False)
    values: dict[str, Any] = json.loads(arguments)
    security = TlsFiles.of(Path(values["folder"])).security()

    async def serve() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        if role == "scheduler":
            await serve_scheduler("127.0.0.1", values["port"], security, stop, worker_lost_s=values["worker_lost_s"])
        else:
            options = EngineOptions(**values["options"] | {"backoff_s": tuple(values["options"]["backoff_s"])})
            await serve_worker(
                f"tls://127.0.0.1:{values['port']}",
                options,
                security,
                stop,
                host="127.0.0.1",
                drain_s=values["drain_s"],
                lease_s=values["lease_s"],
            )

    asyncio.run(serve())


if __name__ == "__main__":
    main(*sys.argv[1:])
