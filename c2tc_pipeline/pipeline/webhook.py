"""Posting a small JSON message to a webhook without ever telling its address.

A webhook's URL usually carries a token, so neither the URL nor the text of any error below, which may repeat it, leaves
this module. What is posted, and when, is decided in :mod:`c2tc_pipeline.pipeline.sensors`.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

# Dagster gives one tick of a sensor a minute, and hands it up to five failed runs: 5 x (3 x 3 + 1.5) s is below it.
TRIES = 3
TIMEOUT_SECONDS = 3.0
PAUSE_SECONDS = 0.5


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would turn the post into a get, and show it to a host that nobody named."""

    def redirect_request(self, *_: Any) -> None:
        return None


def post_json(url: str, message: Mapping[str, Any]) -> str | None:
    """Post a message, trying a few times where that may help; never raise.

    Parameters
    ----------
    url : str
        An ``http://`` or ``https://`` address. It is a secret.
    message : mapping
        What to post.

    Returns
    -------
    str or None
        None when it arrived, else why not, in words that may be shown.

    Examples
    --------
    >>> post_json("ftp://host/secret", {"text": "hello"})
    'its address does not begin with http:// or https://'
    """
    if not url.lower().startswith(("http://", "https://")):
        return "its address does not begin with http:// or https://"
    body = json.dumps(message).encode()
    problem = ""
    for attempt in range(TRIES):
        if attempt:
            time.sleep(PAUSE_SECONDS * attempt)
        problem, may_pass = _post_once(url, body)
        if not may_pass:
            break
    return problem or None


def _post_once(url: str, body: bytes) -> tuple[str, bool]:
    """Return what went wrong, empty when nothing did, and whether another try may help."""
    headers = {"Content-Type": "application/json"}
    try:
        request = urllib.request.Request(url, body, headers, method="POST")
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_SECONDS):
            return "", False
    except urllib.error.HTTPError as error:
        return f"it answered {error.code}", error.code == 429 or error.code >= 500
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        # InvalidURL is the one of them that only another address mends.
        return f"it could not be reached ({type(reason).__name__})", not isinstance(error, http.client.InvalidURL)
    except ValueError:
        return "its address is not a valid one", False
