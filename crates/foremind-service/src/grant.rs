//! Grants: short-lived signed tokens (JWT, RFC 7519) that fix a tenant and a user.
//!
//! The signature is `jwt-compact`'s business. What a token says is read here: header and claims have exactly the fields
//! below, the algorithm is the key's own, and time is compared with the clock that the host passes.

use base64ct::{Base64UrlUnpadded, Encoding};
use foremind_types::{Name, Scope};
use jwt_compact::alg::{Ed25519, Hs256};
use jwt_compact::{Algorithm, AlgorithmExt, Claims, Header, UntrustedToken};
use serde::{Deserialize, Serialize};

use crate::config::{Config, Signer, Verifier};

/// Longest life of a grant, in seconds.
pub const MAX_GRANT_S: i64 = 24 * 60 * 60;
/// Life of a grant whose maker names none, in seconds.
pub(crate) const GRANT_S: i64 = 15 * 60;
/// How far the maker's clock may be ahead of this one, in seconds. There is no such patience at the other end.
const AHEAD_S: i64 = 60;
/// Longest token.
const TOKEN_BYTES: usize = 4096;
/// What grants are for: a token made for something else with the same key is none.
const AUDIENCE: &str = "foremind";

/// What a grant's holder may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// The prompt for a query.
    Recall,
    /// The profile alone.
    Profile,
    /// Get and list records.
    Read,
    /// Store what the owner told, by the MCP tool. Turns are not ingested with grants.
    Remember,
    /// Erase records.
    Forget,
}

/// What a grant fixes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// Its own id, for the rate.
    pub jti: Name,
    /// `foremind`.
    pub(crate) aud: String,
    /// Made at, Unix seconds.
    pub iat: i64,
    /// Of no use from then on, Unix seconds.
    pub exp: i64,
    /// Whose memories.
    pub tenant: Name,
    /// Whose memory.
    pub user: Name,
    /// Narrows to a project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Name>,
    /// Narrows to a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<Name>,
    /// Narrows to an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Name>,
    /// What its holder may do.
    pub verbs: Vec<Verb>,
}

/// Exactly the fields that a header may have: none that brings or names a key of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StrictHeader {
    #[allow(
        dead_code,
        reason = "compared by the library; named here so that nothing else may stand in a header"
    )]
    alg: String,
    kid: Name,
    #[serde(default)]
    typ: Option<String>,
}

/// Why a token is no grant. The caller's fault, except where its maker's clock is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrantError {
    /// Not three base64url parts with a header and claims of the documented shape.
    Malformed,
    /// No key has this `kid`.
    UnknownKid,
    /// Another algorithm than the key's, or a signature that does not hold.
    BadSignature,
    /// Claims that contradict themselves or the limits.
    BadClaims,
    /// Its time is over.
    Expired,
}

impl Grant {
    /// The scope that it opens.
    #[must_use]
    pub fn scope(&self) -> Scope {
        Scope {
            user: self.user.clone(),
            project: self.project.clone(),
            thread: self.thread.clone(),
            agent: self.agent.clone(),
        }
    }

    /// Whether it covers a verb.
    #[must_use]
    pub fn allows(&self, verb: Verb) -> bool {
        self.verbs.contains(&verb)
    }

    /// A grant that begins now. `entropy` makes its id.
    pub(crate) fn new(
        scope: Scope,
        tenant: Name,
        verbs: Vec<Verb>,
        life_s: i64,
        now_ms: i64,
        entropy: &[u8; 32],
    ) -> Option<Self> {
        let iat = now_ms.div_euclid(1_000);
        let hash = blake3::derive_key("foremind service 1: id of a grant", entropy);
        Some(Self {
            jti: Name::new(blake3::Hash::from_bytes(hash).to_hex()[..32].to_owned()).ok()?,
            aud: AUDIENCE.to_owned(),
            iat,
            exp: iat.checked_add(life_s)?,
            tenant,
            user: scope.user,
            project: scope.project,
            thread: scope.thread,
            agent: scope.agent,
            verbs,
        })
    }

    /// The signed token.
    pub(crate) fn token(&self, config: &Config) -> Option<String> {
        let header = Header::empty()
            .with_key_id(config.signing_kid.as_str())
            .with_token_type("JWT");
        let claims = Claims::new(self);
        match config.signer().ok()? {
            Signer::Hs256(key) => Hs256.token(&header, &claims, &key).ok(),
            Signer::EdDsa(key) => Ed25519.token(&header, &claims, &key).ok(),
        }
    }

    /// Reads a token.
    ///
    /// # Errors
    /// Why it is no grant, the signature before the claims.
    pub(crate) fn read(config: &Config, token: &str, now_ms: i64) -> Result<Self, GrantError> {
        if token.len() > TOKEN_BYTES {
            return Err(GrantError::Malformed);
        }
        let mut parts = token.split('.');
        let (Some(header), Some(claims), Some(_), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(GrantError::Malformed);
        };
        let header: StrictHeader = part(header)?;
        if header
            .typ
            .is_some_and(|typ| !typ.eq_ignore_ascii_case("JWT"))
        {
            return Err(GrantError::Malformed);
        }
        let untrusted = UntrustedToken::new(token).map_err(|_| GrantError::Malformed)?;
        match config
            .verifier(header.kid.as_str())
            .ok_or(GrantError::UnknownKid)?
        {
            Verifier::Hs256(key) => signed(&Hs256, key, &untrusted)?,
            Verifier::EdDsa(key) => signed(&Ed25519, key, &untrusted)?,
        }
        let grant: Self = part(claims)?;
        if !config.grants_for(header.kid.as_str(), &grant.tenant) {
            return Err(GrantError::BadClaims);
        }
        grant.check(now_ms)?;
        Ok(grant)
    }

    fn check(&self, now_ms: i64) -> Result<(), GrantError> {
        let now_s = now_ms.div_euclid(1_000);
        let life_s = self
            .exp
            .checked_sub(self.iat)
            .ok_or(GrantError::BadClaims)?;
        let made_soon = self.iat <= now_s.saturating_add(AHEAD_S);
        if self.aud != AUDIENCE || !(1..=MAX_GRANT_S).contains(&life_s) || !made_soon {
            return Err(GrantError::BadClaims);
        }
        if now_s >= self.exp {
            return Err(GrantError::Expired);
        }
        Ok(())
    }
}

fn part<T: serde::de::DeserializeOwned>(encoded: &str) -> Result<T, GrantError> {
    let json = Base64UrlUnpadded::decode_vec(encoded).map_err(|_| GrantError::Malformed)?;
    serde_json::from_slice(&json).map_err(|_| GrantError::Malformed)
}

fn signed<A: Algorithm>(
    algorithm: &A,
    key: &A::VerifyingKey,
    token: &UntrustedToken<'_>,
) -> Result<(), GrantError> {
    // The claims are read strictly afterwards, so here anything will do.
    algorithm
        .validator::<serde_json::Map<String, serde_json::Value>>(key)
        .validate(token)
        .map(drop)
        .map_err(|_| GrantError::BadSignature)
}
