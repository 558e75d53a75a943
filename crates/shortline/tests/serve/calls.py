"""A service of gRPC and its client, for grpc.rs and the moves: both are gRPC's own library, messages are plain bytes.

    calls.py server                       prints its port and serves until its standard input ends
    calls.py client ADDRESS [ROOTS HOST]  tries every kind of call; ends with 0 if all went as they should. With the
                                          certificate in the file ROOTS, over TLS, as if ADDRESS were HOST
"""

import sys
import threading
from concurrent import futures

import grpc

PATIENCE_S = 30
LARGE = b"x" * 300_000
cancelled = threading.Event()


def unary(request, context):
    context.set_trailing_metadata((("x-length", str(len(request))),))
    return request


def server_stream(request, context):
    for number in range(int(request)):
        yield b"%d" % number


def client_stream(requests, context):
    return b"%d" % sum(len(request) for request in requests)


def both(requests, context):
    for request in requests:
        yield request.upper()


def failing(request, context):
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not today: \u00e4")


def failing_late(request, context):
    yield b"one"
    context.abort(grpc.StatusCode.DATA_LOSS, "all gone")


def slow(request, context):
    context.add_callback(cancelled.set)
    yield b"begun"
    cancelled.wait(PATIENCE_S)


def was_cancelled(request, context):
    return b"yes" if cancelled.wait(PATIENCE_S) else b"no"


HANDLERS = {
    "Unary": grpc.unary_unary_rpc_method_handler(unary),
    "ServerStream": grpc.unary_stream_rpc_method_handler(server_stream),
    "ClientStream": grpc.stream_unary_rpc_method_handler(client_stream),
    "Both": grpc.stream_stream_rpc_method_handler(both),
    "Failing": grpc.unary_unary_rpc_method_handler(failing),
    "FailingLate": grpc.unary_stream_rpc_method_handler(failing_late),
    "Slow": grpc.unary_stream_rpc_method_handler(slow),
    "WasCancelled": grpc.unary_unary_rpc_method_handler(was_cancelled),
}


def serve():
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("Test", HANDLERS),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    sys.stdin.read()
    server.stop(None)


def connect(address, roots=None, host=None):
    if roots is None:
        return grpc.insecure_channel(address)
    with open(roots, "rb") as file:
        trust = grpc.ssl_channel_credentials(file.read())
    names = [("grpc.ssl_target_name_override", host), ("grpc.default_authority", host)]
    return grpc.secure_channel(address, trust, names)


def ask(channel):
    limit = {"timeout": PATIENCE_S}

    call = channel.unary_unary("/Test/Unary")
    for message in (b"", b"hello", LARGE):
        answer, told = call.with_call(message, **limit)
        assert answer == message
        assert dict(told.trailing_metadata())["x-length"] == str(len(message))

    answers = channel.unary_stream("/Test/ServerStream")(b"1000", **limit)
    assert [int(answer) for answer in answers] == list(range(1000))
    assert list(channel.unary_stream("/Test/ServerStream")(b"0", **limit)) == []

    pieces = iter([LARGE, b"ab", b""])
    assert channel.stream_unary("/Test/ClientStream")(pieces, **limit) == b"300002"

    # Each message waits for the answer to the one before.
    answered = threading.Semaphore(1)

    def words():
        for word in (b"one", b"two", b"three"):
            assert answered.acquire(timeout=PATIENCE_S)
            yield word

    heard = []
    for answer in channel.stream_stream("/Test/Both")(words(), **limit):
        heard.append(answer)
        answered.release()
    assert heard == [b"ONE", b"TWO", b"THREE"]

    try:
        channel.unary_unary("/Test/Failing")(b"", **limit)
        raise AssertionError("the call did not fail")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.FAILED_PRECONDITION, error
        assert error.details() == "not today: \u00e4", error

    heard = []
    try:
        for answer in channel.unary_stream("/Test/FailingLate")(b"", **limit):
            heard.append(answer)
        raise AssertionError("the call did not fail")
    except grpc.RpcError as error:
        assert (heard, error.code(), error.details()) == ([b"one"], grpc.StatusCode.DATA_LOSS, "all gone")

    try:
        channel.unary_unary("/Test/Unknown")(b"", **limit)
        raise AssertionError("the call did not fail")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNIMPLEMENTED, error

    # A deadline that passes reaches the service.
    answers = channel.unary_stream("/Test/Slow")(b"", timeout=1)
    try:
        for answer in answers:
            assert answer == b"begun"
        raise AssertionError("the call did not end by its deadline")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error
    assert channel.unary_unary("/Test/WasCancelled")(b"", **limit) == b"yes"
    channel.close()


if sys.argv[1] == "server":
    serve()
else:
    ask(connect(*sys.argv[2:]))
