"""Firebase ID tokens, for `AUTH_MODE=firebase`. The user is the one whose `firebase_uid` is the token's subject."""

import secrets
from typing import Any, cast

import firebase_admin  # pyright: ignore[reportMissingTypeStubs]
import google.auth.credentials
from firebase_admin import auth, credentials, exceptions  # pyright: ignore[reportMissingTypeStubs]

from app.api.identities import FirebaseUid, TokenExpired, TokenInvalid, VerifierUnavailable

# The library has no type annotations.
_firebase = cast(Any, firebase_admin)
_auth = cast(Any, auth)

CLOCK_SKEW_S = 5
HTTP_TIMEOUT_S = 3


class _NoCredential(credentials.Base):
    """Verifying needs only public certificates, so no service account is needed."""

    def get_credential(self) -> Any:
        return google.auth.credentials.AnonymousCredentials()


class FirebaseTokens:
    def __init__(self, project_id: str, *, emulator: bool = False) -> None:
        self._emulator = emulator
        options = {"projectId": project_id, "httpTimeout": HTTP_TIMEOUT_S}
        # A random name, because the library keeps its apps in a global registry and a test may create two.
        name = f"verifier-{secrets.token_hex(4)}"
        self._app: Any = _firebase.initialize_app(_NoCredential(), options, name)

    def verify(self, token: str) -> FirebaseUid:
        # The library reads the emulator's variable itself and then accepts unsigned tokens.
        if not self._emulator and _firebase._auth_utils.is_emulated():
            raise VerifierUnavailable("An emulator is set up that the settings do not know of.")
        try:
            claims: dict[str, Any] = _auth.verify_id_token(token, app=self._app, clock_skew_seconds=CLOCK_SKEW_S)
        except auth.ExpiredIdTokenError:
            raise TokenExpired("The token has expired; sign in again.") from None
        except auth.CertificateFetchError:
            raise VerifierUnavailable("The certificates that tokens are checked with cannot be fetched.") from None
        except (exceptions.FirebaseError, ValueError, TypeError, AttributeError, KeyError):
            # The library raises built-in errors for tokens with parts that are JSON but not objects.
            raise TokenInvalid("The token is not valid.") from None
        return FirebaseUid(str(claims["uid"]))

    def close(self) -> None:
        _firebase.delete_app(self._app)
