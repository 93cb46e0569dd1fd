"""The floor of `events`: an asyncio server that sends what it is given to everybody who is connected.

python -m benchmarks.bare_events PORT

A connection that begins with GET is a stream. Any other one gives lines; each is the JSON of an event, with its id.
"""

import asyncio
import json
import sys

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

streams: list[asyncio.StreamWriter] = []


def chunk(fields: dict[str, object]) -> bytes:
    data = json.dumps(fields, separators=(",", ":"))
    block = f"id: {fields['id']}\nevent: {fields['type']}\ndata: {data}\n\n".encode()
    return f"{len(block):x}\r\n".encode() + block + b"\r\n"


async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    line = await reader.readline()
    if line.startswith(b"GET"):
        writer.write(HEAD + chunk({"id": 0, "type": "READY"}))
        streams.append(writer)
        return
    while line:
        piece = chunk(json.loads(line))
        for stream in streams:
            stream.write(piece)
        line = await reader.readline()


async def main() -> None:
    server = await asyncio.start_server(connected, "127.0.0.1", int(sys.argv[1]), backlog=2048)
    print("ready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
