"""Post a small JSON message to a webhook without showing its address.

A webhook's URL usually carries a token, so neither the URL nor the text of any error below, which may repeat it, leaves
this module. What is posted, and when, is decided in :mod:`c2tc_pipeline.pipeline.sensors`.
"""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from c2tc_pipeline.common.retries import with_retries

# Dagster gives one tick of a sensor a minute, and hands it up to five failed runs: 5 x (3 x 3 + 1.5) s is below it.
TRIES = 3
TIMEOUT_SECONDS = 3.0
PAUSE_SECONDS = 0.5


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would turn the POST into a GET and send it to a host that was not configured."""

    def redirect_request(self, *_: Any) -> None:
        return None


def post_json(url: str, message: Mapping[str, Any]) -> str | None:
    """Post a message with retries; never raise.

    Parameters
    ----------
    url : str
        An ``http://`` or ``https://`` address. It is a secret.
    message : mapping
        What to post.

    Returns
    -------
    str or None
        None when it arrived, else the reason, without the address.

    Examples
    --------
    >>> post_json("ftp://host/secret", {"text": "hello"})
    'its address does not begin with http:// or https://'
    """
    if not url.lower().startswith(("http://", "https://")):
        return "its address does not begin with http:// or https://"
    body = json.dumps(message).encode()
    try:
        return with_retries(lambda: _post_once(url, body), TRIES, pause=PAUSE_SECONDS)
    except ConnectionError as error:
        return str(error)


def _post_once(url: str, body: bytes) -> str | None:
    """Return None, or why it failed; raise ConnectionError where another try may help."""
    headers = {"Content-Type": "application/json"}
    try:
        request = urllib.request.Request(url, body, headers, method="POST")
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_SECONDS):
            return None
    except urllib.error.HTTPError as error:
        problem, is_transient = f"it answered {error.code}", error.code == 429 or error.code >= 500
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        problem = f"it could not be reached ({type(reason).__name__})"
        is_transient = not isinstance(error, http.client.InvalidURL)
    except ValueError:
        return "its address is not a valid one"
    if is_transient:
        raise ConnectionError(problem)
    return problem
