"""Deliver messages about the pipeline to a webhook, as JSON or in Slack's format, and by e-mail."""

from __future__ import annotations

import http.client
import json
import os
import smtplib
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from email.message import EmailMessage
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

from c2tc_pipeline.common.errors import InputError, with_retries

WEBHOOK_VARIABLE = "C2TC_WEBHOOK_URL"
FORMAT_VARIABLE = "C2TC_WEBHOOK_FORMAT"
SMTP_VARIABLE = "C2TC_SMTP_URL"
RECIPIENTS_VARIABLE = "C2TC_MAIL_TO"
SENDER_VARIABLE = "C2TC_MAIL_FROM"
_FORMATS = ("json", "slack")
_SLACK_HOST = "hooks.slack.com"
TRIES = 3
TIMEOUT_SECONDS = 3.0
PAUSE_SECONDS = 0.5

Message = Mapping[str, Any]
"""A JSON object; ``text`` is its first line for people, ``lines`` the lines after it, ``link`` an address or None."""
Deliver = Callable[[Message], None]
"""Delivers a message; raises ConnectionError where a retry may help, InputError where it does not."""


def targets() -> dict[str, Deliver]:
    """Return where messages go by the environment, by name; an InputError says which variable is wrong."""
    found: dict[str, Deliver] = {}
    url = _variable(WEBHOOK_VARIABLE)
    if url:
        is_slack = _host(url) == _SLACK_HOST
        wanted = _variable(FORMAT_VARIABLE) or ("slack" if is_slack else "json")
        if wanted not in _FORMATS:
            raise InputError(f"{FORMAT_VARIABLE} is {wanted!r}; set it to one of: {', '.join(_FORMATS)}.")
        found["webhook"] = (
            (lambda message: post_json(url, as_slack(message))) if wanted == "slack" else partial(post_json, url)
        )
    server = _variable(SMTP_VARIABLE)
    if server:
        to = [each.strip() for each in _variable(RECIPIENTS_VARIABLE).split(",") if each.strip()]
        if not to:
            raise InputError(f"{SMTP_VARIABLE} is set, but no recipient; set {RECIPIENTS_VARIABLE}.")
        found["mail"] = partial(_mail, server, to, _variable(SENDER_VARIABLE) or to[0])
    return found


def send(deliver: Deliver, message: Message) -> str | None:
    """Deliver a message with a few retries; return None, or why it failed, without any address or password."""
    try:
        with_retries(lambda: deliver(message), TRIES, pause=PAUSE_SECONDS)
    except (ConnectionError, InputError) as error:
        return str(error)
    return None


def as_slack(message: Message) -> dict[str, str]:
    """Return a message in the format of Slack's incoming webhooks."""
    first, *rest = (_slack_text(line) for line in (message["text"], *message["lines"]))
    link = message["link"]
    shown = [f"*{first}*", *rest, *([f"<{link}|Open the run>"] if link else [])]
    return {"text": "\n".join(shown)}


def _slack_text(text: str) -> str:
    # Slack's three control characters; a name of a user or channel needs one of them to be a mention.
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _variable(name: str) -> str:
    return os.environ.get(name, "").strip()


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuse redirects, which would turn the post into a get and send it to a host that was not configured."""

    def redirect_request(self, *_: Any) -> None:
        return None


def post_json(url: str, message: Message) -> None:
    """Post a JSON object; raise ConnectionError where a retry may help, InputError where it does not."""
    if not url.lower().startswith(("http://", "https://")):
        raise InputError("its address does not begin with http:// or https://")
    try:
        body = json.dumps(message).encode()
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="POST")
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_SECONDS):
            return
    except urllib.error.HTTPError as error:
        is_transient = error.code == 429 or error.code >= 500
        problem = f"it answered {error.code}"
    except (OSError, http.client.HTTPException) as error:
        is_transient = not isinstance(error, http.client.InvalidURL)
        problem = f"it could not be reached ({type(getattr(error, 'reason', error)).__name__})"
    except ValueError:
        is_transient, problem = False, "its address is not a valid one"
    raise (ConnectionError if is_transient else InputError)(problem)


def _mail(url: str, recipients: list[str], sender: str, message: Message) -> None:
    """Send a message by e-mail; a password is only sent over an encrypted connection."""
    mail = EmailMessage()
    try:
        server = urlsplit(url)
        port = server.port or (465 if server.scheme == "smtps" else 587)
        mail["Subject"], mail["From"], mail["To"] = message["text"], sender, ", ".join(recipients)
    except ValueError:
        raise InputError("an address of it is not a valid one") from None
    if server.scheme not in ("smtp", "smtps") or not server.hostname:
        raise InputError("its address does not look like smtp://host:port or smtps://host:port")
    mail.set_content("\n".join([message["text"], *message["lines"], *([message["link"]] if message["link"] else [])]))
    context = ssl.create_default_context()
    is_encrypted = server.scheme == "smtps"
    connect: Callable[[], smtplib.SMTP] = (
        partial(smtplib.SMTP_SSL, server.hostname, port, timeout=TIMEOUT_SECONDS, context=context)
        if is_encrypted
        else partial(smtplib.SMTP, server.hostname, port, timeout=TIMEOUT_SECONDS)
    )
    try:
        with connect() as smtp:
            smtp.ehlo()
            if not is_encrypted and smtp.has_extn("starttls"):
                smtp.starttls(context=context)
                is_encrypted = True
            if server.password:
                if not is_encrypted:
                    raise InputError("it offers no encryption, so that no password was sent")
                smtp.login(unquote(server.username or ""), unquote(server.password))
            smtp.send_message(mail)
    except smtplib.SMTPResponseException as error:
        raise (ConnectionError if error.smtp_code < 500 else InputError)(f"it answered {error.smtp_code}") from None
    except smtplib.SMTPRecipientsRefused as error:
        codes = sorted({code for code, _ in error.recipients.values()})
        refusal = InputError if codes[0] >= 500 else ConnectionError
        raise refusal(f"it refused the recipients ({', '.join(map(str, codes))})") from None
    except (OSError, smtplib.SMTPException) as error:
        raise ConnectionError(f"it could not be reached ({type(error).__name__})") from None
