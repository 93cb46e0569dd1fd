from app.foundation.errors import Conflict, Forbidden, TooManyRequests


class NotYourProfile(Forbidden):
    """A coordinator keeps their own profile and those of their institution; administrators keep the others."""

    code = "not_your_profile"

    def __init__(self) -> None:
        super().__init__("You keep your own profile and those of your institution. An administrator keeps this one.")


class ProfileHasChannels(Conflict):
    """The channels of a profile were verified for its user, so they do not go to another user with it."""

    code = "profile_has_channels"

    def __init__(self) -> None:
        super().__init__("The channels of this profile belong to its user. Retire them before you give it another one.")


class NotAWebhook(Conflict):
    """Only webhooks are signed, so only they have secrets."""

    code = "not_a_webhook"

    def __init__(self) -> None:
        super().__init__("Only webhooks have secrets.")


class ChannelDisabled(Conflict):
    """Nothing is sent to a channel that is switched off; enable it first."""

    code = "channel_disabled"

    def __init__(self) -> None:
        super().__init__("The channel is switched off, so nothing can be sent to it. Enable it first.")


class AlreadyVerified(Conflict):
    """The channel is verified; there is nothing left to do."""

    code = "channel_already_verified"

    def __init__(self) -> None:
        super().__init__("The channel is verified; there is nothing left to do.")


class VerificationTooSoon(TooManyRequests):
    """A code was sent to this address a moment ago."""

    code = "verification_too_soon"

    def __init__(self, retry_after_s: int) -> None:
        super().__init__("A code was sent a moment ago. Wait for it before you ask for another.", retry_after_s)


class VerificationNotRunning(Conflict):
    """No verification of this channel is running; start one and send the code that arrives."""

    code = "verification_not_running"

    def __init__(self) -> None:
        super().__init__("No verification of this channel is running. Start one with POST.")


class VerificationNeedsNoCode(Conflict):
    """A webhook is verified by its own answer to the challenge, and not by a code."""

    code = "verification_needs_no_code"

    def __init__(self) -> None:
        super().__init__("A webhook answers the challenge by itself. Look at the channel's verifyStatus.")


class VerificationExpired(Conflict):
    """The code came too late; start again."""

    code = "verification_expired"

    def __init__(self) -> None:
        super().__init__("The code is no longer good. Start again with POST.")


class VerificationTriesUsedUp(Conflict):
    """Too many wrong codes; start again."""

    code = "verification_tries_used_up"

    def __init__(self) -> None:
        super().__init__("There were too many wrong codes. Start again with POST.")


class WrongVerificationCode(Conflict):
    """This is not the code that was sent; `triesLeft` says how often another may be tried."""

    code = "wrong_verification_code"

    def __init__(self, tries_left: int) -> None:
        super().__init__("This is not the code that was sent. Look at the newest message.", tries_left=tries_left)
