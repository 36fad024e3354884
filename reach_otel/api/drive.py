"""Wrap a function of any kind (plain, async, generator, async generator) in one span a call.

The wrapper is of the same kind as the function, so that frameworks which ask :mod:`inspect` treat it alike. A
generator's span starts with its body and ends when the body is exhausted, closed or raises; it is current only while
the body itself runs, never in the code that takes the items.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from functools import wraps
from typing import Any, Final

from reach_otel.api.context import hand
from reach_otel.api.spans import Open, Parameters

_TEXTS_MAX: Final = 10_000


def wrap(function: Callable[..., Any], kind: str, name: str, capture: bool | None) -> Callable[..., Any]:
    """Return ``function`` with a span around each call; what it takes, returns, yields and raises stays as it is."""
    parameters = Parameters.of(function)

    def opened(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Open:
        span = Open(kind, name, capture=capture)
        span.given(lambda: parameters.bind(args, kwargs))
        return span

    if inspect.isasyncgenfunction(function):
        return _wrap_async_generator(function, opened)
    if inspect.isgeneratorfunction(function):

        @wraps(function)
        def over_generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            return (yield from _drive(function(*args, **kwargs), opened(args, kwargs)))

        return over_generator

    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def over_coroutine(*args: Any, **kwargs: Any) -> Any:
            with opened(args, kwargs) as span:
                result = await function(*args, **kwargs)
                span.gave(result)
                return result

        return over_coroutine

    @wraps(function)
    def over_function(*args: Any, **kwargs: Any) -> Any:
        with opened(args, kwargs) as span:
            result = function(*args, **kwargs)
            span.gave(result)
            return result

    return over_function


class _Yielded:
    """Keep what a generator gave, bounded: texts are joined, else the last item stands for the whole."""

    __slots__ = ("_chars", "_last", "_texts")

    def __init__(self) -> None:
        self._texts: list[str] | None = []
        self._chars = 0
        self._last: Any = None

    def add(self, item: Any) -> None:
        self._last = item
        if self._texts is None:
            return
        if not isinstance(item, str):
            self._texts = None
        elif self._chars <= hand.content_max and len(self._texts) < _TEXTS_MAX:
            self._texts.append(item)
            self._chars += len(item)

    def whole(self, returned: Any = None) -> Any:
        if returned is not None:
            return returned
        return "".join(self._texts) if self._texts else self._last


def _drive(body: Generator[Any, Any, Any], span: Open) -> Generator[Any, Any, Any]:
    yielded = _Yielded()
    advance: Callable[[Any], Any] = body.send
    argument: Any = None
    try:
        while True:
            with span.current():
                item = advance(argument)
            yielded.add(item)
            try:
                advance, argument = body.send, (yield item)
            except GeneratorExit:
                with span.current():
                    body.close()
                raise
            except BaseException as exc:  # noqa: BLE001 - whatever the caller throws is for the body
                advance, argument = body.throw, exc
    except StopIteration as stop:
        span.gave(yielded.whole(stop.value))
        return stop.value
    except GeneratorExit:
        span.gave(yielded.whole())
        raise
    except BaseException as exc:
        span.failed(exc)
        raise
    finally:
        span.end()


def _wrap_async_generator(
    function: Callable[..., AsyncGenerator[Any, Any]],
    opened: Callable[[tuple[Any, ...], dict[str, Any]], Open],
) -> Callable[..., AsyncGenerator[Any, Any]]:
    """Do what :func:`_drive` does; for want of an async ``yield from`` the loop stands in the wrapper."""

    @wraps(function)
    async def over_async_generator(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        body = function(*args, **kwargs)
        span = opened(args, kwargs)
        yielded = _Yielded()
        advance: Callable[[Any], Any] = body.asend
        argument: Any = None
        try:
            while True:
                with span.current():
                    item = await advance(argument)
                yielded.add(item)
                try:
                    advance, argument = body.asend, (yield item)
                except GeneratorExit:
                    with span.current():
                        await body.aclose()
                    raise
                except BaseException as exc:  # noqa: BLE001 - whatever the caller throws is for the body
                    advance, argument = body.athrow, exc
        except StopAsyncIteration:
            span.gave(yielded.whole())
        except GeneratorExit:
            span.gave(yielded.whole())
            raise
        except BaseException as exc:
            span.failed(exc)
            raise
        finally:
            span.end()

    return over_async_generator
