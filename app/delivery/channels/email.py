"""E-mail through a relaying mail server, over TLS."""

import ssl
import threading
import time
from collections.abc import Sequence

import structlog

from app.delivery.channels.base import OutgoingMessage, SingleProvider, Wiring
from app.delivery.channels.connections import TimedBackend
from app.delivery.channels.email_message import InvalidSubject, Mail, compose
from app.delivery.channels.smtp import Connection, ConversationFailed, SmtpReply, Stage
from app.delivery.messages.addresses import InvalidAddress, check_address
from app.delivery.messages.retry import RetryPolicy, SendResult, names_of_settings, policy_of
from app.delivery.messages.values import NotificationType, Outcome
from app.settings.mail_server import MailSender, MailServer

log = structlog.get_logger(__name__)

TYPES = (NotificationType.EMAIL,)
# Repeatable, although a server delivers a repeated mail twice: mail programs recognise the Message-ID, and for mail,
# twice is better than never.
POLICY = RetryPolicy(timeout_s=10.0, retries=3)
SETTINGS = ("smtp_url", "smtp_from", "smtp_ca_file", *names_of_settings(TYPES[0]))


# Servers close connections that are idle for too long or have carried too many mails.
_LONGEST_IDLE_S = 30.0
_MOST_MAILS = 100

# No such mailbox, domain or address; the mailbox has moved; the domain accepts no mail. The other 5.1 codes are about
# the sender, or are ambiguous.
_NO_SUCH_RECIPIENT = frozenset({"5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10"})
_MAILBOX_CODES = frozenset({550, 551, 553, 556})
# The server shuts down, or limits our rate.
_CLOSING = 421
_AUTH_REQUIRED = 530


class EmailChannel(SingleProvider):
    """Keeps idle connections and reuses them, so there is at most one for each sending thread."""

    def __init__(
        self,
        server: MailServer,
        sender: MailSender,
        *,
        context: ssl.SSLContext | None = None,
        policy: RetryPolicy = POLICY,
        longest_idle_s: float = _LONGEST_IDLE_S,
    ) -> None:
        super().__init__("smtp", TYPES, policy)
        self._server = server
        self._sender = sender
        self._context = context or ssl.create_default_context()
        self._longest_idle_s = longest_idle_s
        self._network = TimedBackend()
        self._idle: list[Connection] = []
        self._is_closed = False
        self._lock = threading.Lock()

    def handle(self, messages: Sequence[OutgoingMessage]) -> list[SendResult]:
        return [self._send(message) for message in messages]

    def _send(self, message: OutgoingMessage) -> SendResult:
        try:
            recipient = check_address(NotificationType.EMAIL, message.notification.recipient, "")
            mail = compose(message.notification, self._sender, recipient)
        except InvalidAddress:
            return SendResult(Outcome.PERMANENT, "INVALID_ADDRESS")
        except InvalidSubject:
            return SendResult(Outcome.PERMANENT, "INVALID_SUBJECT")
        try:
            return self._deliver(mail, time.monotonic() + self.policy.timeout_s)
        except ConversationFailed as failed:
            result = judge(failed)
            _log_operator_fault(failed, result, message)
            return result

    def _deliver(self, mail: Mail, until: float) -> SendResult:
        """Uses an idle connection if there is one. If it turns out to be broken before the server can have taken the
        mail, a new connection is tried within the same time."""
        kept = self._take()
        if kept is not None:
            try:
                return self._send_over(kept, mail, until, time.monotonic() + self.policy.timeout_s / 4)
            except ConversationFailed as failed:
                if not _was_stale(failed):
                    raise
        fresh = Connection(self._server, self._context, self._network, until)
        return self._send_over(fresh, mail, until, until)

    def _send_over(self, connection: Connection, mail: Mail, until: float, first_answer_until: float) -> SendResult:
        if mail.needs_smtputf8 and not connection.takes_utf8:
            self._keep(connection)
            return SendResult(Outcome.PERMANENT, "INVALID_ADDRESS")
        try:
            reply = connection.deliver(mail, until, first_answer_until)
        except ConversationFailed as failed:
            self._recover(connection, failed, until)
            raise
        self._keep(connection)
        return SendResult(Outcome.SENT, provider_message_id=reply.queue_id or mail.message_id)

    def _recover(self, connection: Connection, failed: ConversationFailed, until: float) -> None:
        """Keeps the connection after a refusal, because the server may take the next mail."""
        if failed.reply is None or failed.reply.code == _CLOSING:
            connection.leave()
            return
        try:
            connection.start_over(until)
        except ConversationFailed:
            connection.leave()
            return
        self._keep(connection)

    def _take(self) -> Connection | None:
        too_old = time.monotonic() - self._longest_idle_s
        with self._lock:
            expired = [idle for idle in self._idle if idle.used_at < too_old or idle.mails >= _MOST_MAILS]
            self._idle = [idle for idle in self._idle if idle not in expired]
            kept = self._idle.pop() if self._idle else None
        for connection in expired:
            connection.leave()
        return kept

    def _keep(self, connection: Connection) -> None:
        with self._lock:
            if not self._is_closed:
                self._idle.append(connection)
                return
        connection.leave()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.leave()


def _was_stale(failed: ConversationFailed) -> bool:
    if failed.stage is Stage.HANDED_OVER:
        return False
    if failed.reply is not None:
        return failed.stage is Stage.MAIL and failed.reply.code == _CLOSING
    return not failed.is_late or failed.stage is Stage.MAIL


def judge(failed: ConversationFailed) -> SendResult:
    if failed.reply is None:
        return _judge_silence(failed)
    return _judge_reply(failed.stage, failed.reply)


def _judge_silence(failed: ConversationFailed) -> SendResult:
    if failed.stage is Stage.HANDED_OVER:
        return SendResult(Outcome.UNKNOWN, "SMTP_TIMEOUT" if failed.is_late else "CONNECTION_LOST")
    in_conversation = failed.is_late and failed.stage > Stage.CONNECT
    return SendResult(Outcome.TRANSIENT, "SMTP_TIMEOUT" if in_conversation else "UNREACHABLE")


def _judge_reply(stage: Stage, reply: SmtpReply) -> SendResult:
    code = f"SMTP_{reply.code}"
    if reply.code == _CLOSING:
        return SendResult(Outcome.TRANSIENT, code, overloaded=True)
    if reply.code < 500:
        # Greylisting and full mailboxes concern only this recipient.
        return SendResult(Outcome.TRANSIENT, code, at_fault=stage is not Stage.RCPT)
    if stage is Stage.AUTH or reply.code == _AUTH_REQUIRED:
        return SendResult(Outcome.PERMANENT, "AUTH_REJECTED")
    if stage < Stage.AUTH:
        # The server refused before it saw the mail, so another attempt may succeed.
        return SendResult(Outcome.TRANSIENT, code)
    if reply.code in _MAILBOX_CODES and reply.status in _NO_SUCH_RECIPIENT and stage > Stage.MAIL:
        return SendResult(Outcome.RECIPIENT_GONE, code, at_fault=False)
    return SendResult(Outcome.PERMANENT, code)


def _log_operator_fault(failed: ConversationFailed, result: SendResult, message: OutgoingMessage) -> None:
    """Logs failures that only an operator can repair."""
    if result.error_code == "AUTH_REJECTED":
        log.error("smtp_refuses_us", reply=failed.reply and failed.reply.code, notification_id=str(message.id))
    elif failed.stage is Stage.TLS:
        log.error("smtp_without_tls", late=failed.is_late, notification_id=str(message.id))


def open_channel(wiring: Wiring) -> EmailChannel | None:
    server, sender = wiring.settings.mail_server, wiring.settings.mail_sender
    if server is None or sender is None:
        return None
    context = ssl.create_default_context()
    if wiring.settings.smtp_ca_file is not None:
        context.load_verify_locations(wiring.settings.smtp_ca_file)
    return EmailChannel(server, sender, context=context, policy=policy_of(wiring.settings, TYPES[0], POLICY))
