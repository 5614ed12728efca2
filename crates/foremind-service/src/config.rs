//! What a service is set up with: its keys and its limits.

use core::fmt;
use std::collections::BTreeSet;

use base64ct::{Base64UrlUnpadded, Encoding};
use foremind_types::Name;
use jwt_compact::alg::{Ed25519, Hs256Key, SigningKey, VerifyingKey};
use serde::Deserialize;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

/// Least bytes of a shared secret (RFC 7518, section 3.2).
const SECRET_BYTES: usize = 32;

/// Keys and limits, usually from one JSON secret of the host. Secrets are base64url without padding.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// 32 bytes, from which each memory's own wrapping key and names are derived. It cannot be changed later.
    pub(crate) master: Secret,
    /// Who may ingest and administer. Several, so that keys rotate: add the new one, move callers, drop the old one.
    pub(crate) service_keys: Vec<ServiceKey>,
    /// With what grants are checked.
    pub(crate) grant_keys: Vec<GrantKey>,
    /// Which of them signs new grants.
    pub(crate) signing_kid: Name,
    /// Origins from which browsers may call `/mcp`; without an entry only callers without `Origin` may.
    #[serde(default)]
    pub(crate) origins: Vec<String>,
    /// Requests a minute for each grant, over time.
    #[serde(default = "per_minute")]
    pub(crate) per_minute: u32,
    /// Requests at once for each grant.
    #[serde(default = "burst")]
    pub(crate) burst: u32,
    /// Keep the rates in the store: for hosts whose instances live for one request. Otherwise each instance counts
    /// for itself.
    #[serde(default)]
    pub(crate) shared_rates: bool,
    /// Milliseconds after which a recall falls back to the profile alone.
    #[serde(default = "recall_ms")]
    pub(crate) recall_ms: u32,
    /// What the guard does with what it finds, where it differs from the default: lines `kind = action`.
    /// Read by whoever opens a memory.
    #[serde(default)]
    pub(crate) policy: String,
    /// What the grant keys are checked with, in their order: a public key is made of its seed once.
    #[serde(skip)]
    verifiers: Vec<Verifier>,
}

fn per_minute() -> u32 {
    120
}

fn burst() -> u32 {
    60
}

fn recall_ms() -> u32 {
    300
}

/// A key that ingests and administers: presented as `Authorization: Bearer key.<kid>.<secret>`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServiceKey {
    pub(crate) kid: Name,
    /// At least 32 bytes.
    pub(crate) secret: Secret,
    /// The only tenant that it reaches; absent: all.
    #[serde(default)]
    pub(crate) tenant: Option<Name>,
}

/// A key that grants are signed or checked with. Its algorithm is its own: what a token claims is only compared.
#[derive(Debug, Deserialize)]
#[serde(tag = "alg", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum GrantKey {
    /// HMAC with SHA-256.
    #[serde(rename = "HS256")]
    Hs256 {
        /// Its name.
        kid: Name,
        /// At least 32 bytes.
        secret: Secret,
        /// The only tenant that its grants are for; absent: all.
        #[serde(default)]
        tenant: Option<Name>,
    },
    /// Ed25519, to sign and to check.
    #[serde(rename = "EdDSA")]
    EdDsa {
        /// Its name.
        kid: Name,
        /// The seed, 32 bytes.
        #[serde(default)]
        seed: Option<Secret>,
        /// The public key, 32 bytes, where somebody else signs.
        #[serde(default)]
        public: Option<Secret>,
        /// The only tenant that its grants are for; absent: all.
        #[serde(default)]
        tenant: Option<Name>,
    },
}

impl GrantKey {
    pub(crate) fn kid(&self) -> &Name {
        match self {
            Self::Hs256 { kid, .. } | Self::EdDsa { kid, .. } => kid,
        }
    }

    fn tenant(&self) -> Option<&Name> {
        match self {
            Self::Hs256 { tenant, .. } | Self::EdDsa { tenant, .. } => tenant.as_ref(),
        }
    }
}

/// Bytes that are not shown.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut text = String::deserialize(deserializer)?;
        let bytes = Base64UrlUnpadded::decode_vec(&text);
        text.zeroize();
        bytes
            .map(|bytes| Self(Zeroizing::new(bytes)))
            .map_err(|_| serde::de::Error::custom("expected base64url without padding"))
    }
}

/// Why a configuration cannot be used. The host's operator mends it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// No JSON of that shape; where, and what was expected. Never a value.
    Malformed {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// A key of the wrong length or form.
    BadKey(&'static str),
    /// Two keys of one kind have the same `kid`.
    RepeatedKid(Name),
    /// There is no grant key of that `kid` that can sign.
    NoSigningKey(Name),
    /// A limit of 0.
    Zero(&'static str),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { line, column } => {
                write!(f, "the configuration is malformed at {line}:{column}")
            }
            Self::BadKey(which) => write!(f, "{which} has a wrong length or form"),
            Self::RepeatedKid(kid) => write!(f, "two keys are called {kid}"),
            Self::NoSigningKey(kid) => write!(f, "no grant key called {kid} can sign"),
            Self::Zero(which) => write!(f, "{which} must be at least 1"),
        }
    }
}

impl core::error::Error for ConfigError {}

impl Config {
    /// Reads and checks a configuration.
    ///
    /// # Errors
    /// What is wrong with it; never a value of it.
    pub fn from_json(json: &[u8]) -> Result<Self, ConfigError> {
        let mut config: Self =
            serde_json::from_slice(json).map_err(|error| ConfigError::Malformed {
                line: error.line(),
                column: error.column(),
            })?;
        config.check()?;
        let verifiers = config.grant_keys.iter().map(verifier);
        config.verifiers = verifiers.collect::<Result<_, _>>()?;
        Ok(config)
    }

    /// With the rates in the store, whatever the configuration says: see `sharedRates`.
    #[must_use]
    pub fn with_shared_rates(self) -> Self {
        Self {
            shared_rates: true,
            ..self
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.master.bytes().len() != 32 {
            return Err(ConfigError::BadKey("master"));
        }
        distinct(self.service_keys.iter().map(|key| &key.kid))?;
        distinct(self.grant_keys.iter().map(GrantKey::kid))?;
        if self
            .service_keys
            .iter()
            .any(|key| key.secret.bytes().len() < SECRET_BYTES)
        {
            return Err(ConfigError::BadKey("a service key"));
        }
        self.signer()?;
        for (limit, name) in [
            (self.per_minute, "perMinute"),
            (self.burst, "burst"),
            (self.recall_ms, "recallMs"),
        ] {
            if limit == 0 {
                return Err(ConfigError::Zero(name));
            }
        }
        Ok(())
    }

    /// The service key that a credential names, compared in constant time: an unknown name costs the same.
    pub(crate) fn service_key(&self, kid: &str, secret: &[u8]) -> Option<&ServiceKey> {
        // Hashes, so that the comparison does not tell the length either.
        let given = blake3::hash(secret);
        let mut found = None;
        for key in &self.service_keys {
            let kept = blake3::hash(key.secret.bytes());
            let same = bool::from(kept.as_bytes().ct_eq(given.as_bytes()));
            if same & (key.kid.as_str() == kid) {
                found = Some(key);
            }
        }
        found
    }

    pub(crate) fn verifier(&self, kid: &str) -> Option<&Verifier> {
        let mut keys = self.grant_keys.iter().zip(&self.verifiers);
        let found = keys.find(|(key, _)| key.kid().as_str() == kid);
        found.map(|(_, verifier)| verifier)
    }

    /// Whether grants of this key may be for a tenant.
    pub(crate) fn grants_for(&self, kid: &str, tenant: &Name) -> bool {
        let key = self.grant_keys.iter().find(|key| key.kid().as_str() == kid);
        key.is_some_and(|key| key.tenant().is_none_or(|only| only == tenant))
    }

    pub(crate) fn signer(&self) -> Result<Signer, ConfigError> {
        let none = || ConfigError::NoSigningKey(self.signing_kid.clone());
        let key = self
            .grant_keys
            .iter()
            .find(|key| *key.kid() == self.signing_kid);
        match key.ok_or_else(none)? {
            GrantKey::Hs256 { secret, .. } => Ok(Signer::Hs256(Hs256Key::new(secret.bytes()))),
            GrantKey::EdDsa { seed, .. } => {
                let seed = seed.as_ref().ok_or_else(none)?;
                signing(seed).map(Signer::EdDsa)
            }
        }
    }
}

/// The type of a key that signs with Ed25519.
pub(crate) type EdSigning = <Ed25519 as jwt_compact::Algorithm>::SigningKey;
/// The type of a key that checks it.
pub(crate) type EdVerifying = <Ed25519 as jwt_compact::Algorithm>::VerifyingKey;

/// With what a grant is checked.
pub(crate) enum Verifier {
    Hs256(Hs256Key),
    EdDsa(EdVerifying),
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }
}

/// With what a grant is signed.
pub(crate) enum Signer {
    Hs256(Hs256Key),
    EdDsa(EdSigning),
}

fn signing(seed: &Secret) -> Result<EdSigning, ConfigError> {
    if seed.bytes().len() != 32 {
        return Err(ConfigError::BadKey("a seed"));
    }
    <EdSigning as SigningKey<Ed25519>>::from_slice(seed.bytes())
        .map_err(|_| ConfigError::BadKey("a seed"))
}

fn verifier(key: &GrantKey) -> Result<Verifier, ConfigError> {
    match key {
        GrantKey::Hs256 { secret, .. } if secret.bytes().len() >= SECRET_BYTES => {
            Ok(Verifier::Hs256(Hs256Key::new(secret.bytes())))
        }
        GrantKey::Hs256 { .. } => Err(ConfigError::BadKey("a grant key")),
        GrantKey::EdDsa {
            seed: Some(seed),
            public: None,
            ..
        } => Ok(Verifier::EdDsa(signing(seed)?.verifying_key())),
        GrantKey::EdDsa {
            seed: None,
            public: Some(public),
            ..
        } => <EdVerifying as VerifyingKey<Ed25519>>::from_slice(public.bytes())
            .map(Verifier::EdDsa)
            .map_err(|_| ConfigError::BadKey("a public key")),
        GrantKey::EdDsa { .. } => Err(ConfigError::BadKey("an EdDSA key (a seed or a public key)")),
    }
}

fn distinct<'k>(kids: impl Iterator<Item = &'k Name>) -> Result<(), ConfigError> {
    let mut seen = BTreeSet::new();
    for kid in kids {
        if !seen.insert(kid) {
            return Err(ConfigError::RepeatedKid(kid.clone()));
        }
    }
    Ok(())
}
