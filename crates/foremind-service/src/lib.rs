//! The hosted side: an HTTP request in, a response out, for many memories of many tenants.
//!
//! The crate has no socket, no clock, no randomness and no store. [`Service::step`] says what it needs (work in one
//! memory, a value of its own) and the host provides it: at once where the host's store is synchronous ([`serve`]), or
//! over calls between objects where it is not. Who may do what is decided here and nowhere else.

mod call;
mod config;
mod directory;
mod grant;
mod host;
mod http;
mod limits;
mod mcp;
mod metrics;
#[cfg(feature = "openapi")]
pub mod openapi;
mod place;
mod routes;
pub mod wire;

pub use call::{Answer, Call, Replica, Reply, Service, Step, Work};
pub use config::{Config, ConfigError, GrantKey, ServiceKey};
pub use grant::{Grant, GrantError, MAX_GRANT_S, Verb};
pub use host::{Batch, Host, serve};
pub use http::{BODY_BYTES, HttpRequest, HttpResponse};
pub use place::Place;
