"""For LiteLLM, as a library and as its proxy.

    litellm.callbacks = [sluice.litellm.handler]

The handler takes a turn for each call, and reports status, headers, tokens and cost when it is over. The resource is the one that is named like LiteLLM's
provider (openai, anthropic, gemini); calls of other providers are not gated.
"""

from __future__ import annotations

import logging
import threading
from typing import Any, Dict, Mapping, Optional

from litellm.integrations.custom_logger import CustomLogger

from ._errors import NotFound, SluiceError
from ._limiter import Limiter
from ._ticket import Ticket

__all__ = ["Handler", "handler"]

_log = logging.getLogger("sluice")


class Handler(CustomLogger):  # type: ignore[misc,unused-ignore]
    """``resources`` maps LiteLLM's providers to resources of other names; ``how`` are the arguments of ``Limiter``."""

    def __init__(self, resources: Optional[Mapping[str, str]] = None, **how: Any) -> None:
        super().__init__()
        self._resources, self._how = resources or {}, how
        self._lock = threading.Lock()
        self._limiters: Dict[str, Limiter] = {}
        self._tickets: Dict[str, Optional[Ticket]] = {}

    def _limiter(self, provider: str) -> Limiter:
        resource = self._resources.get(provider, provider)
        with self._lock:
            return self._limiters.setdefault(resource, Limiter(resource, **self._how))

    async def async_pre_call_deployment_hook(self, kwargs: Dict[str, Any], call_type: Any) -> Optional[Dict[str, Any]]:
        """Waits without holding the loop up. What the gate refuses is raised."""
        model, provider = _model_of(str(kwargs.get("model", "")), kwargs.get("custom_llm_provider"))
        call = str(kwargs.get("litellm_call_id", ""))
        try:
            self._tickets[call] = await self._limiter(provider).atake(model=model)
        except NotFound:
            self._tickets[call] = None
        return None

    def log_pre_api_call(self, model: str, messages: Any, kwargs: Any) -> None:
        """Waits in programs without a loop. LiteLLM drops what is raised here, so such a call waits as long as it takes."""
        call = str(kwargs.get("litellm_call_id", ""))
        if call in self._tickets or kwargs.get("acompletion"):
            return
        name, provider = _model_of(model, kwargs.get("custom_llm_provider"))
        try:
            self._tickets[call] = self._limiter(provider).take(model=name)
        except NotFound:
            self._tickets[call] = None
        except SluiceError as e:
            _log.warning("the call goes without a turn: %s", e)

    def log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        self._over(kwargs, 200, _headers(response_obj), None, response_obj)

    def log_failure_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        error = kwargs.get("exception")
        response = getattr(error, "response", None)
        self._over(kwargs, int(getattr(error, "status_code", 0) or 0), getattr(response, "headers", None), str(error), None)

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        await _aside(self.log_success_event, kwargs, response_obj, start_time, end_time)

    async def async_log_failure_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        await _aside(self.log_failure_event, kwargs, response_obj, start_time, end_time)

    def _over(self, kwargs: Any, status: int, headers: Any, body: Optional[str], response: Any) -> None:
        ticket = self._tickets.pop(str(kwargs.get("litellm_call_id", "")), None)
        if ticket is None:
            return
        usage = getattr(response, "usage", None)
        used: Dict[str, float] = {}
        if usage is not None:
            into, out = int(getattr(usage, "prompt_tokens", 0) or 0), int(getattr(usage, "completion_tokens", 0) or 0)
            used = {"input_tokens": into, "output_tokens": out, "tokens": into + out}
        try:
            ticket.answer(status if 100 <= status <= 599 else 0, headers, body)
            ticket.close(used or None)
        except SluiceError as e:
            _log.warning("ticket %s could not be ended: %s", ticket.id, e)


async def _aside(do: Any, *args: Any) -> None:
    import asyncio

    await asyncio.get_running_loop().run_in_executor(None, lambda: do(*args))


def _model_of(model: str, provider: Optional[str]) -> Any:
    """The model's name without the provider's, and the provider."""
    import litellm

    try:
        name, found, _, _ = litellm.get_llm_provider(model, custom_llm_provider=provider)
    except Exception:  # it is LiteLLM's to say what is wrong with the name
        return model, provider or ""
    return name, found


def _headers(response: Any) -> Dict[str, str]:
    hidden = getattr(response, "_hidden_params", None) or {}
    found = {str(name): str(value) for name, value in (hidden.get("additional_headers") or {}).items()}
    prefix = "llm_provider-"
    return {name[len(prefix) :]: value for name, value in found.items() if name.startswith(prefix)} or found


#: The handler with the usual settings.
handler: Handler = Handler()
