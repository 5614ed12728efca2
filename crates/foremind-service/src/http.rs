//! Requests and responses as the hosts hand them over, and the problems that a request can meet.

use foremind_types::{Error, ErrorCode};
use serde::{Deserialize, Serialize};

/// Most bytes of a body. A host stops reading there, and answers as [`HttpResponse::too_large`] does.
pub const BODY_BYTES: usize = 1024 * 1024;

/// One request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpRequest {
    /// As it came, in upper case.
    pub method: String,
    /// Path and query, as they came: nothing is decoded.
    pub target: String,
    /// In any order; names in any case.
    pub headers: Vec<(String, String)>,
    /// At most [`BODY_BYTES`] are looked at.
    pub body: Vec<u8>,
}

/// One response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    /// The status code.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// May be empty.
    pub body: Vec<u8>,
}

impl HttpRequest {
    /// The value of a header; `Err` if it stands there twice.
    pub(crate) fn header(&self, name: &str) -> Result<Option<&str>, Problem> {
        let mut found = self
            .headers
            .iter()
            .filter(|(key, _)| key.eq_ignore_ascii_case(name));
        let first = found.next().map(|(_, value)| value.trim());
        if found.next().is_some() {
            return Err(Problem::new(Kind::InvalidRequest, "a header stands twice"));
        }
        Ok(first)
    }

    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    pub(crate) fn query(&self) -> &str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }
}

impl HttpResponse {
    pub(crate) fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        Self {
            status,
            headers: vec![
                header("content-type", content_type),
                header("cache-control", "no-store"),
                header("x-content-type-options", "nosniff"),
            ],
            body: body.into(),
        }
    }

    pub(crate) fn empty(status: u16) -> Self {
        let mut response = Self::new(status, "", Vec::new());
        response.headers.remove(0);
        response
    }

    pub(crate) fn json(status: u16, body: &impl Serialize) -> Self {
        match serde_json::to_vec(body) {
            Ok(body) => Self::new(status, "application/json", body),
            Err(_) => Problem::new(Kind::Internal, "the answer cannot be written").response(),
        }
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// What a host answers when a body is longer than [`BODY_BYTES`], without handing it over.
    #[must_use]
    pub fn too_large() -> Self {
        Problem::new(Kind::BodyTooLarge, "the body is longer than 1 MiB").response()
    }

    /// What a host answers when a body does not come to its end in the time that it gives.
    #[must_use]
    pub fn too_slow() -> Self {
        Problem::new(
            Kind::BodyTooSlow,
            "the body did not come to its end in time; send it at once",
        )
        .response()
    }

    /// What a host answers when a body breaks off.
    #[must_use]
    pub fn cut() -> Self {
        Problem::new(Kind::InvalidRequest, "the body broke off").response()
    }

    /// What a host answers when it cannot hand a request over at all.
    #[must_use]
    pub fn failed(error: Error) -> Self {
        Problem::from(error).response()
    }
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $variant:ident = $status:literal, $code:literal, $title:literal;)+) => {
        /// What a request can meet beside the errors of a memory.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind { $($(#[doc = $doc])+ $variant,)+ }

        impl Kind {
            /// All of them, for the documents.
            #[cfg(feature = "openapi")]
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub(crate) fn status(self) -> u16 { match self { $(Self::$variant => $status),+ } }
            pub(crate) fn code(self) -> &'static str { match self { $(Self::$variant => $code),+ } }
            fn title(self) -> &'static str { match self { $(Self::$variant => $title),+ } }
        }
    };
}

kinds! {
    /// Malformed headers, query or JSON.
    InvalidRequest = 400, "invalid-request", "The request is malformed";
    /// No credentials, or ones that say nothing.
    Unauthenticated = 401, "unauthenticated", "Credentials are missing or wrong";
    /// A grant whose signature or claims do not hold.
    GrantInvalid = 401, "grant-invalid", "The grant does not hold";
    /// A grant whose time is over.
    GrantExpired = 401, "grant-expired", "The grant has expired";
    /// The route wants a service key.
    ServiceKeyNeeded = 403, "service-key-needed", "A service key is needed";
    /// The route wants a grant.
    GrantNeeded = 403, "grant-needed", "A grant is needed";
    /// An id or verb that the credentials do not cover.
    Outside = 403, "outside-grant", "The credentials do not cover this";
    /// An `Origin` that is not allowed.
    OriginRefused = 403, "origin-refused", "The origin is not allowed";
    /// No such path.
    NotFound = 404, "not-found", "There is nothing here";
    /// The path has other methods.
    MethodNotAllowed = 405, "method-not-allowed", "The method is not allowed here";
    /// `Accept` leaves no form to answer in.
    NotAcceptable = 406, "not-acceptable", "JSON is not accepted";
    /// It did not come in the time that a body has.
    BodyTooSlow = 408, "body-too-slow", "The body took too long";
    /// Longer than a body may be.
    BodyTooLarge = 413, "body-too-large", "The body is too large";
    /// Not `application/json`.
    UnsupportedMediaType = 415, "unsupported-media-type", "The body must be JSON";
    /// The grant's rate is used up.
    RateLimited = 429, "rate-limited", "Too many requests with this grant";
    /// An invariant broke.
    Internal = 500, "internal", "An invariant broke";
}

/// A problem (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    status: u16,
    code: &'static str,
    title: &'static str,
    detail: String,
    headers: Vec<(&'static str, String)>,
}

/// The problem document (RFC 9457, `application/problem+json`).
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct ProblemBody {
    /// `urn:foremind:problem:` and the code.
    #[serde(rename = "type")]
    pub kind: String,
    /// The same for every problem of the code.
    pub title: String,
    /// The status code.
    pub status: u16,
    /// A sentence for a developer; never text that a person told.
    pub detail: String,
    /// What to branch on.
    pub code: String,
}

impl Problem {
    pub(crate) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self {
            status: kind.status(),
            code: kind.code(),
            title: kind.title(),
            detail: detail.into(),
            headers: Vec::new(),
        }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    pub(crate) fn response(&self) -> HttpResponse {
        let body = ProblemBody {
            kind: format!("urn:foremind:problem:{}", self.code),
            title: self.title.to_owned(),
            status: self.status,
            detail: self.detail.clone(),
            code: self.code.to_owned(),
        };
        let body = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = HttpResponse::new(self.status, "application/problem+json", body);
        if self.status == 401 {
            response = response.with("www-authenticate", "Bearer");
        }
        for (name, value) in &self.headers {
            response = response.with(name, value.clone());
        }
        response
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self {
            status: status_of(error.code),
            code: error.code.as_str(),
            title: title_of(error.code),
            detail: error.message,
            headers: Vec::new(),
        }
    }
}

/// The status of a memory's error.
pub(crate) fn status_of(code: ErrorCode) -> u16 {
    match code {
        ErrorCode::InvalidArgument | ErrorCode::TextEmpty => 400,
        ErrorCode::TextTooLarge => 413,
        ErrorCode::UnknownId => 404,
        ErrorCode::Conflict | ErrorCode::LimitReached => 409,
        ErrorCode::QuotaExceeded => 507,
        ErrorCode::StorageDenied
        | ErrorCode::StorageLost
        | ErrorCode::StorageFailed
        | ErrorCode::Closed
        | ErrorCode::Aborted => 503,
        _ => 500,
    }
}

fn title_of(code: ErrorCode) -> &'static str {
    match status_of(code) {
        400 => "The request is malformed",
        404 => "There is nothing here",
        409 => "The memory does not take this now",
        413 => "The text is too large",
        503 | 507 => "The store cannot be used",
        _ => "The memory cannot be used",
    }
}
