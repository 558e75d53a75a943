"""A client of HTTP/3 that shares no code with the server: aioquic. Says whether one connection gets the first target as it is in a file, and the
second over a hundred streams at a time."""

import asyncio
import ssl
import sys

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration


class Client(QuicConnectionProtocol):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.http = H3Connection(self._quic)
        self.answers = {}

    def get(self, target):
        stream = self._quic.get_next_available_stream_id()
        head = [
            (b":method", b"GET"),
            (b":scheme", b"https"),
            (b":authority", b"localhost"),
            (b":path", target.encode()),
        ]
        self.http.send_headers(stream, head, end_stream=True)
        done = asyncio.get_running_loop().create_future()
        self.answers[stream] = (done, bytearray())
        self.transmit()
        return done

    def quic_event_received(self, event):
        for heard in self.http.handle_event(event):
            if not isinstance(heard, (HeadersReceived, DataReceived)):
                continue
            done, body = self.answers[heard.stream_id]
            if isinstance(heard, DataReceived):
                body.extend(heard.data)
            if heard.stream_ended:
                done.set_result(bytes(body))


async def main(port, cert, root, large, small):
    configuration = QuicConfiguration(is_client=True, alpn_protocols=["h3"], server_name="localhost", verify_mode=ssl.CERT_REQUIRED)
    configuration.load_verify_locations(cert)
    async with connect("127.0.0.1", int(port), configuration=configuration, create_protocol=Client) as client:
        with open(root + large, "rb") as file:
            assert await client.get(large) == file.read()
        with open(root + small, "rb") as file:
            wanted = file.read()
        answers = await asyncio.gather(*[client.get(small) for _ in range(100)])
        assert all(answer == wanted for answer in answers)


asyncio.run(main(*sys.argv[1:]))
