"""The certificates of the cluster: who has them may run any program on its machines; nobody else may connect."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from distributed import Security

VALID_DAYS = 3650
_EARLIER = timedelta(days=1)
"""For machines whose clock is slow."""


@dataclass(frozen=True)
class TlsFiles:
    authority: Path
    certificate: Path
    key: Path

    @classmethod
    def of(cls, folder: Path) -> Self:
        return cls(folder / "authority.pem", folder / "cluster.pem", folder / "cluster.key")

    def security(self) -> Security:
        """Raises `OSError` if a file cannot be used; an error of TLS is one, too."""
        certificate, key = str(self.certificate), str(self.key)
        security = Security(
            require_encryption=True,
            tls_ca_file=str(self.authority),
            tls_client_cert=certificate,
            tls_client_key=key,
            tls_scheduler_cert=certificate,
            tls_scheduler_key=key,
            tls_worker_cert=certificate,
            tls_worker_key=key,
        )
        security.get_connection_args("client")  # pyright: ignore[reportUnknownMemberType]
        return security


def make_certificates(folder: Path) -> TlsFiles:
    """An authority for this cluster alone, and one certificate for all of its machines. The key of the authority is
    not kept, so that nobody can make another certificate. Raises `FileExistsError` rather than replace files."""
    files = TlsFiles.of(folder)
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = _sign("Yaninda jobs authority", authority_key, authority_key, x509.BasicConstraints(True, 0))
    certificate = _sign("yaninda-jobs", key, authority_key, x509.BasicConstraints(False, None))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    for path, content in (
        (files.key, secret),
        (files.authority, authority.public_bytes(pem)),
        (files.certificate, certificate.public_bytes(pem)),
    ):
        path.touch(mode=0o600, exist_ok=False)
        path.write_bytes(content)
    return files


def _sign(
    name: str, key: ec.EllipticCurvePrivateKey, authority_key: ec.EllipticCurvePrivateKey, what: x509.BasicConstraints
) -> x509.Certificate:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .issuer_name(_named("Yaninda jobs authority"))
        .subject_name(_named(name))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + timedelta(days=VALID_DAYS))
        .add_extension(what, critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("yaninda-jobs")]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )


def _named(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
