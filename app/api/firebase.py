"""Firebase ID tokens, for `AUTH_MODE=firebase`. The user is the one whose `firebase_uid` is the token's subject.

With a service account, a token is refused within a minute after it was revoked, or its account disabled.
"""

import secrets
from typing import Any, cast

import firebase_admin  # pyright: ignore[reportMissingTypeStubs]
import google.auth.credentials
import google.auth.exceptions
from firebase_admin import auth, credentials, exceptions  # pyright: ignore[reportMissingTypeStubs]

from app.api.firebase_accounts import AccountUnknown, FirebaseAccount, FirebaseAccounts
from app.api.identities import (
    AnonymousRefused,
    FirebaseUid,
    TokenExpired,
    TokenInvalid,
    TokenRevoked,
    VerifierUnavailable,
)

# The library has no type annotations.
_firebase = cast(Any, firebase_admin)
_auth = cast(Any, auth)

CLOCK_SKEW_S = 5
HTTP_TIMEOUT_S = 3


class _NoCredential(credentials.Base):
    """Signatures are verified with public certificates. Only asking for an account needs a service account."""

    def get_credential(self) -> Any:
        return google.auth.credentials.AnonymousCredentials()


class FirebaseTokens:
    def __init__(
        self,
        project_id: str,
        *,
        emulator: bool = False,
        tenant: str | None = None,
        credentials_path: str | None = None,
    ) -> None:
        """Raises `OSError` or `ValueError` if the credentials file cannot be used."""
        self._emulator = emulator
        self._tenant = tenant
        credential = credentials.Certificate(credentials_path) if credentials_path else _NoCredential()
        options = {"projectId": project_id, "httpTimeout": HTTP_TIMEOUT_S}
        # A random name, because the library keeps its apps in a global registry and a test may create two.
        name = f"verifier-{secrets.token_hex(4)}"
        self._app: Any = _firebase.initialize_app(credential, options, name)
        self._client: Any = _auth.Client(self._app, tenant_id=tenant)
        self._accounts = FirebaseAccounts(self._ask) if credentials_path else None

    def verify(self, token: str) -> FirebaseUid:
        # The library reads the emulator's variable itself and then accepts unsigned tokens.
        if not self._emulator and _firebase._auth_utils.is_emulated():
            raise VerifierUnavailable("An emulator is set up that the settings do not know of.")
        try:
            claims: dict[str, Any] = self._client.verify_id_token(token, clock_skew_seconds=CLOCK_SKEW_S)
        except auth.ExpiredIdTokenError:
            raise TokenExpired("The token has expired; sign in again.") from None
        except auth.CertificateFetchError:
            raise VerifierUnavailable("The certificates that tokens are checked with cannot be fetched.") from None
        except (exceptions.FirebaseError, ValueError, TypeError, AttributeError, KeyError):
            # The library raises built-in errors for tokens with parts that are JSON but not objects.
            raise TokenInvalid("The token is not valid.") from None
        self._check_sign_in(claims)
        uid = str(claims["uid"])
        if self._accounts is not None and not self._accounts.find(uid).accepts(claims["iat"]):
            raise TokenRevoked("The token was revoked; sign in again.")
        return FirebaseUid(uid)

    def _check_sign_in(self, claims: dict[str, Any]) -> None:
        """Tenants share the keys of their project. A token of another tenant is as foreign as one of another project,
        also where the settings name none."""
        found = claims.get("firebase")
        sign_in = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        if sign_in.get("tenant") != self._tenant:
            raise TokenInvalid("The token is not valid.")
        if sign_in.get("sign_in_provider") == "anonymous":
            raise AnonymousRefused("Sign in with a phone number or another proof of who you are.")

    def _ask(self, uid: str) -> FirebaseAccount:
        try:
            user = self._client.get_user(uid)
        except auth.UserNotFoundError:
            return FirebaseAccount(is_active=False)
        except (exceptions.FirebaseError, google.auth.exceptions.GoogleAuthError, ValueError) as error:
            raise AccountUnknown from error
        return FirebaseAccount(not user.disabled, (user.tokens_valid_after_timestamp or 0) / 1000)

    def close(self) -> None:
        _firebase.delete_app(self._app)
