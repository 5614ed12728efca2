//! Where a memory is: names and keys that are derived, so that no two memories share any.

use foremind_memory::DataKey;
use foremind_types::Name;

/// The place of one memory.
#[derive(Clone, Debug)]
pub struct Place {
    /// The name of its key space: 32 lower-case hexadecimal digits, which tell nothing about whose it is.
    pub space: String,
    /// What wraps its data key.
    pub key: DataKey,
}

/// A hash of a tenant and something of theirs. The lengths stand before the texts, so no two pairs meet, and both
/// stand whole: `a` is no part of `ab`.
fn hash(master: &[u8], purpose: &str, tenant: &Name, of: &str) -> blake3::Hasher {
    let key = blake3::derive_key(purpose, master);
    let mut hasher = blake3::Hasher::new_keyed(&key);
    for text in [tenant.as_str(), of] {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher
}

pub(crate) fn name(master: &[u8], purpose: &str, tenant: &Name, of: &str) -> String {
    let hash = hash(master, purpose, tenant, of).finalize();
    hash.to_hex()[..32].to_owned()
}

impl Place {
    pub(crate) fn new(master: &[u8], tenant: &Name, user: &Name) -> Self {
        let key = hash(
            master,
            "foremind service 1: key of a memory",
            tenant,
            user.as_str(),
        );
        Self {
            space: name(
                master,
                "foremind service 1: space of a memory",
                tenant,
                user.as_str(),
            ),
            key: DataKey::new(*key.finalize().as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_places_are_one() {
        let name = |text: &str| Name::new(text).unwrap();
        let mut spaces = std::collections::BTreeSet::new();
        let mut keys = std::collections::BTreeSet::new();
        // Prefixes, and pairs that are the same text when put together.
        for (tenant, user) in [
            ("a", "b"),
            ("ab", "c"),
            ("a", "bc"),
            ("abc", "d"),
            ("a", "bcd"),
            ("b", "a"),
            ("A", "b"),
        ] {
            let place = Place::new(&[7; 32], &name(tenant), &name(user));
            assert!(spaces.insert(place.space), "{tenant} {user}");
            assert!(keys.insert(*place.key.as_bytes()), "{tenant} {user}");
        }
        let elsewhere = Place::new(&[8; 32], &name("a"), &name("b"));
        assert!(!spaces.contains(&elsewhere.space));
    }
}
