//! The HTTP handler: a request of the host to the service, and its response back.

use std::cell::RefCell;
use std::rc::Rc;

use foremind_memory::{Capabilities, Key, Written};
use foremind_service::{BODY_BYTES, Batch, Config, HttpRequest, HttpResponse, Service, serve};
use foremind_types::{Ambient, Embedding, EncodeFailure, Error, ErrorCode, HeadId};
use zeroize::Zeroizing;

use crate::bindings::exports::wasi::http::incoming_handler::Guest;
use crate::bindings::fermyon::spin::variables;
use crate::bindings::wasi::http::types::{
    Fields, IncomingRequest, Method, OutgoingBody, OutgoingResponse, ResponseOutparam,
};
use crate::bindings::wasi::io::streams::StreamError;
use crate::bucket::{Bucket, CAPABILITIES};
use crate::clock::Clock;
use crate::model::Model;
use crate::values::Values;

/// The label that Spin gives an application's own store.
const BUCKET: &str = "default";
/// The variable that holds the configuration.
const CONFIG: &str = "foremind_config";
/// Before the names of what is no memory's. A memory's space has 32 hexadecimal digits.
const OWN: &str = "service";
/// How much is read at once.
const READ_BYTES: u64 = 64 * 1024;
/// Most bytes that one blocking write takes.
const WRITE_BYTES: usize = 4096;
/// How long a body may take, in milliseconds.
const BODY_MS: i64 = 10_000;

thread_local! {
    /// The service and the configuration it was made of, where a host keeps the instance for further requests.
    static SERVICE: RefCell<Option<(Zeroizing<String>, Service)>> = const { RefCell::new(None) };
}

/// The component.
pub(crate) struct Component;

impl Guest for Component {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        send(answer(request).unwrap_or_else(|response| response), out);
    }
}

/// `Err` holds the response to a request that does not reach the service.
fn answer(request: IncomingRequest) -> Result<HttpResponse, HttpResponse> {
    let clock = Clock::new(0).map_err(HttpResponse::failed)?;
    let request = read(request, &clock)?;
    let mut store = Store {
        bucket: None,
        clock,
        model: None,
    };
    let text = Zeroizing::new(variables::get(CONFIG).map_err(|_| {
        let why = "the variable `foremind_config` cannot be read; see docs/SERVICE.md";
        HttpResponse::failed(Error::new(ErrorCode::Internal, why))
    })?);
    SERVICE.with_borrow_mut(|kept| {
        if kept.as_ref().is_none_or(|(known, _)| *known != text) {
            let config = Config::from_json(text.as_bytes())
                .map_err(|error| {
                    HttpResponse::failed(Error::new(ErrorCode::Internal, error.to_string()))
                })?
                // Most of these hosts make an instance for each request.
                .with_shared_rates();
            *kept = Some((text, Service::new(config)));
        }
        match kept {
            Some((_, service)) => Ok(serve(service, &mut store, request)),
            None => Err(HttpResponse::failed(Error::new(
                ErrorCode::Internal,
                "there is no service",
            ))),
        }
    })
}

fn read(request: IncomingRequest, clock: &Clock) -> Result<HttpRequest, HttpResponse> {
    let method = match request.method() {
        Method::Get => "GET".to_owned(),
        Method::Head => "HEAD".to_owned(),
        Method::Post => "POST".to_owned(),
        Method::Put => "PUT".to_owned(),
        Method::Delete => "DELETE".to_owned(),
        Method::Connect => "CONNECT".to_owned(),
        Method::Options => "OPTIONS".to_owned(),
        Method::Trace => "TRACE".to_owned(),
        Method::Patch => "PATCH".to_owned(),
        Method::Other(name) => name,
    };
    let headers = request.headers().entries().into_iter();
    let headers = headers.map(|(name, value)| {
        // What is no text is no value that the service knows.
        (name, String::from_utf8_lossy(&value).into_owned())
    });
    Ok(HttpRequest {
        method,
        target: request.path_with_query().unwrap_or_default(),
        headers: headers.collect(),
        body: body(&request, clock)?,
    })
}

/// The body, read no further than it may be long or may take.
fn body(request: &IncomingRequest, clock: &Clock) -> Result<Vec<u8>, HttpResponse> {
    let Ok(incoming) = request.consume() else {
        return Ok(Vec::new());
    };
    let Ok(stream) = incoming.stream() else {
        return Ok(Vec::new());
    };
    let now_ms = || match clock.ambient() {
        Ok(at) => Ok(at.now_ms),
        Err(error) => Err(HttpResponse::failed(error)),
    };
    let until_ms = now_ms()?.saturating_add(BODY_MS);
    let mut body = Vec::new();
    loop {
        match stream.blocking_read(READ_BYTES) {
            Ok(bytes) => body.extend_from_slice(&bytes),
            Err(StreamError::Closed) => return Ok(body),
            Err(StreamError::LastOperationFailed(_)) => return Err(HttpResponse::cut()),
        }
        if body.len() > BODY_BYTES {
            return Err(HttpResponse::too_large());
        }
        if now_ms()? >= until_ms {
            return Err(HttpResponse::too_slow());
        }
    }
}

/// Hands the response over. A client that went away is nobody's error.
fn send(response: HttpResponse, out: ResponseOutparam) {
    let headers: Vec<(String, Vec<u8>)> = response
        .headers
        .into_iter()
        .map(|(name, value)| (name, value.into_bytes()))
        .collect();
    // The service's own headers are well formed; without them the status still says how it went.
    let Ok(fields) = Fields::from_list(&headers).or_else(|_| Fields::from_list(&[])) else {
        return;
    };
    let outgoing = OutgoingResponse::new(fields);
    let _ = outgoing.set_status_code(response.status);
    let Ok(body) = outgoing.body() else {
        return;
    };
    ResponseOutparam::set(out, Ok(outgoing));
    if let Ok(stream) = body.write() {
        for piece in response.body.chunks(WRITE_BYTES) {
            if stream.blocking_write_and_flush(piece).is_err() {
                break;
            }
        }
    }
    let _ = OutgoingBody::finish(body, None);
}

/// All memories and the directory in one bucket.
struct Store {
    bucket: Option<Rc<Bucket>>,
    clock: Clock,
    model: Option<Model>,
}

impl Store {
    /// Opened when it is needed: what asks for no memory is answered without.
    fn bucket(&mut self) -> Result<Rc<Bucket>, Error> {
        match &self.bucket {
            Some(bucket) => Ok(Rc::clone(bucket)),
            None => Ok(Rc::clone(
                self.bucket.insert(Rc::new(Bucket::open(BUCKET)?)),
            )),
        }
    }

    fn values(&mut self, space: &str) -> Result<Values, Error> {
        Values::within(self.bucket()?, format!("{space}/"))
    }
}

impl foremind_service::Host for Store {
    fn ambient(&mut self) -> Result<Ambient, Error> {
        self.clock.ambient()
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn read(&mut self, space: &str, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        self.values(space)?.read(keys)
    }

    fn write(&mut self, space: &str, batch: &Batch) -> Result<Written, Error> {
        let Batch {
            expected_head,
            puts,
            deletes,
            strict,
        } = batch;
        self.values(space)?
            .write(*expected_head, puts, deletes, *strict)
    }

    fn names(&mut self, space: &str) -> Result<Vec<String>, Error> {
        self.values(space)?.names()
    }

    fn delete(&mut self, space: &str, names: &[String]) -> Result<(), Error> {
        self.values(space)?.delete(names.iter().map(String::as_str))
    }

    fn value(&mut self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.bucket()?.get(&format!("{OWN}/{name}"))
    }

    fn swap(&mut self, name: &str, expected: Option<&[u8]>, value: &[u8]) -> Result<bool, Error> {
        let name = format!("{OWN}/{name}");
        self.bucket()?.swap(&name, |found| found == expected, value)
    }

    fn encode(
        &mut self,
        texts: &[String],
        heads: &[HeadId],
    ) -> Result<Vec<Vec<Embedding>>, EncodeFailure> {
        let model = match self.model.take() {
            Some(model) => model,
            None => Model::load(None).map_err(|_| EncodeFailure::Failed)?,
        };
        self.model.insert(model).encode(texts, heads)
    }
}
