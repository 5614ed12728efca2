//! Which memories a tenant has, and who answers for each: in 256 sealed values for each tenant, by a hash of the user.

use foremind_seal::{Cipher, NONCE_BYTES};
use foremind_types::{Ambient, Error, ErrorCode, Name};
use serde::{Deserialize, Serialize};

use crate::place;
use crate::wire::{MemoryBody, Owner};

/// Values of one tenant.
pub(crate) const SHARDS: u16 = 256;
/// Most memories of one shard: the value stays below what stores take.
const SHARD_MEMORIES: usize = 4_000;

/// What is to be noted of a memory.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) tenant: Name,
    pub(crate) user: Name,
    pub(crate) what: Noting,
}

#[derive(Clone, Debug)]
pub(crate) enum Noting {
    /// That it exists, and who answers for it if that is said.
    Known(Option<Owner>),
    /// That it is gone.
    Gone,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shard {
    tenant: Option<Name>,
    memories: Vec<MemoryBody>,
}

/// The shard of a user.
pub(crate) fn shard_of(master: &[u8], tenant: &Name, user: &Name) -> u16 {
    let purpose = "foremind service 1: shard of the directory";
    let hash = place::name(master, purpose, tenant, user.as_str());
    u16::from_str_radix(&hash[..2], 16).unwrap_or_default()
}

/// The name of a shard's value.
pub(crate) fn name_of(master: &[u8], tenant: &Name, shard: u16) -> String {
    let purpose = "foremind service 1: name of a shard";
    format!(
        "directory-{}",
        place::name(master, purpose, tenant, &shard.to_string())
    )
}

/// The shard with the note taken; `None` where it says so already.
pub(crate) fn noted(
    master: &[u8],
    name: &str,
    stored: Option<&[u8]>,
    note: &Note,
    at: &Ambient,
) -> Result<Option<Vec<u8>>, Error> {
    let mut shard = opened(master, name, &note.tenant, stored)?;
    let place = shard
        .memories
        .iter()
        .position(|memory| memory.user == note.user);
    match (&note.what, place) {
        (Noting::Known(None), Some(_)) | (Noting::Gone, None) => return Ok(None),
        (Noting::Known(owner), Some(place)) => {
            if shard.memories[place].owner == *owner {
                return Ok(None);
            }
            shard.memories[place].owner.clone_from(owner);
        }
        (Noting::Known(_), None) if shard.memories.len() >= SHARD_MEMORIES => {
            return Err(Error::new(
                ErrorCode::LimitReached,
                "the tenant has too many memories for its directory",
            ));
        }
        (Noting::Known(owner), None) => shard.memories.push(MemoryBody {
            user: note.user.clone(),
            owner: owner.clone(),
            since_ms: at.now_ms,
        }),
        (Noting::Gone, Some(place)) => {
            shard.memories.swap_remove(place);
        }
    }
    sealed(master, name, &shard, at).map(Some)
}

/// The memories of a shard.
pub(crate) fn listed(
    master: &[u8],
    name: &str,
    tenant: &Name,
    stored: Option<&[u8]>,
) -> Result<Vec<MemoryBody>, Error> {
    opened(master, name, tenant, stored).map(|shard| shard.memories)
}

fn cipher(master: &[u8]) -> Cipher {
    let key = blake3::derive_key("foremind service 1: key of the directory", master);
    Cipher::new(&key)
}

fn opened(master: &[u8], name: &str, tenant: &Name, stored: Option<&[u8]>) -> Result<Shard, Error> {
    let corrupt = || Error::new(ErrorCode::Corrupt, "a value of the directory is altered");
    let Some(stored) = stored else {
        return Ok(Shard {
            tenant: Some(tenant.clone()),
            memories: Vec::new(),
        });
    };
    let (nonce, sealed) = stored
        .split_first_chunk::<NONCE_BYTES>()
        .ok_or_else(corrupt)?;
    let plain = cipher(master).open(nonce, name.as_bytes(), sealed);
    let plain = plain.ok_or_else(corrupt)?;
    let shard: Shard = serde_json::from_slice(&plain).map_err(|_| corrupt())?;
    // The name is bound to tenant and shard already; this would find a hash that two tenants share.
    if shard.tenant.as_ref() != Some(tenant) {
        return Err(corrupt());
    }
    Ok(shard)
}

fn sealed(master: &[u8], name: &str, shard: &Shard, at: &Ambient) -> Result<Vec<u8>, Error> {
    let internal = || {
        Error::new(
            ErrorCode::Internal,
            "a value of the directory cannot be sealed",
        )
    };
    let plain = serde_json::to_vec(shard).map_err(|_| internal())?;
    let mut hasher = blake3::Hasher::new_derive_key("foremind service 1: nonce of the directory");
    hasher.update(&at.entropy);
    hasher.update(name.as_bytes());
    let mut nonce = [0; NONCE_BYTES];
    nonce.copy_from_slice(&hasher.finalize().as_bytes()[..NONCE_BYTES]);
    let boxed = cipher(master).seal(&nonce, name.as_bytes(), &plain);
    let boxed = boxed.ok_or_else(internal)?;
    Ok([&nonce[..], &boxed].concat())
}
