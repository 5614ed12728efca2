//! A bucket of the host: single values, and what the store of this build's world can do with them.
//!
//! Each of the files has the same functions; the features of the build say which one it is.

#[cfg(all(feature = "draft", not(feature = "spin")))]
mod draft;
#[cfg(not(any(feature = "draft", feature = "spin")))]
mod draft2;
#[cfg(feature = "spin")]
mod spin;

#[cfg(all(feature = "draft", not(feature = "spin")))]
pub(crate) use draft::{Bucket, CAPABILITIES};
#[cfg(not(any(feature = "draft", feature = "spin")))]
pub(crate) use draft2::{Bucket, CAPABILITIES};
#[cfg(feature = "spin")]
pub(crate) use spin::{Bucket, CAPABILITIES};

use foremind_types::{Error, ErrorCode};

fn no_bucket() -> Error {
    Error::new(
        ErrorCode::StorageDenied,
        "the host has no bucket of this name",
    )
}

fn denied() -> Error {
    Error::new(
        ErrorCode::StorageDenied,
        "the host denies access to the bucket",
    )
}

fn other(why: impl Into<String>) -> Error {
    Error::new(ErrorCode::StorageFailed, why)
}

/// A host that never ends its list is not to hang the component.
#[cfg(not(feature = "spin"))]
fn endless() -> Error {
    other("the bucket's list of keys does not advance")
}

/// What the strategy that follows from the capabilities never asks for.
fn not_offered() -> Error {
    Error::new(
        ErrorCode::Internal,
        "the store of this world was asked for what it does not offer",
    )
}
