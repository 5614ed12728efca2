//! The host's side of an HTTP handler: one request in, one response out, bodies that come as the test wants.

use std::sync::{Arc, Mutex, PoisonError};

use wasmtime::component::Resource;
use wasmtime::{Error as Trap, Result};

use crate::host::Host;

#[allow(
    missing_docs,
    clippy::all,
    reason = "generated from wit/, where everything is described"
)]
pub(crate) mod spin {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "service-spin",
        with: {
            "fermyon:spin/key-value": crate::worlds::spin::fermyon::spin::key_value,
            "wasi:clocks/wall-clock": crate::bindings::wasi::clocks::wall_clock,
            "wasi:random/random": crate::bindings::wasi::random::random,
            "wasi:io/error.error": crate::http::Broken,
            "wasi:io/streams.input-stream": crate::http::Incoming,
            "wasi:io/streams.output-stream": crate::http::Outgoing,
            "wasi:http/types.fields": crate::http::Fields,
            "wasi:http/types.incoming-request": crate::http::Request,
            "wasi:http/types.incoming-body": crate::http::Incoming,
            "wasi:http/types.response-outparam": crate::http::Out,
            "wasi:http/types.outgoing-response": crate::http::Begun,
            "wasi:http/types.outgoing-body": crate::http::Outgoing,
        },
        imports: { default: trappable },
    });
}

#[allow(
    missing_docs,
    clippy::all,
    reason = "generated from wit/, where everything is described"
)]
pub(crate) mod swap {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "service",
        with: {
            "wasi:keyvalue/store@0.2.0-draft2": crate::bindings::wasi::keyvalue0_2_0_draft2::store,
            "wasi:keyvalue/atomics@0.2.0-draft2": crate::bindings::wasi::keyvalue0_2_0_draft2::atomics,
            "wasi:clocks/wall-clock": crate::bindings::wasi::clocks::wall_clock,
            "wasi:random/random": crate::bindings::wasi::random::random,
            "wasi:io/error": crate::http::spin::wasi::io::error,
            "wasi:io/streams": crate::http::spin::wasi::io::streams,
            "wasi:http/types": crate::http::spin::wasi::http::types,
            "fermyon:spin/variables": crate::http::spin::fermyon::spin::variables,
        },
        imports: { default: trappable },
    });
}

use spin::fermyon::spin::variables;
use spin::wasi::http::types::{self, ErrorCode, HeaderError, Method};
use spin::wasi::io::error;
use spin::wasi::io::streams::{self, StreamError};

/// What comes of a body, piece by piece.
#[derive(Clone, Debug)]
pub enum Piece {
    /// These bytes.
    Bytes(Vec<u8>),
    /// So many zeros, as often as they are asked for, without end.
    Endless(usize),
    /// The clock goes on so many milliseconds before what follows.
    Wait(i64),
    /// The connection breaks.
    Break,
}

/// A request as a test makes it.
#[derive(Clone, Debug)]
pub struct Request {
    /// In upper case, or as a client chose to write it.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// In order.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body.
    pub body: Vec<Piece>,
}

/// What the handler answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// In order.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Vec<u8>,
}

/// The HTTP part of one instance's host.
#[derive(Default)]
pub(crate) struct Http {
    /// The value of `foremind_config`.
    pub(crate) config: Option<String>,
    /// How many times a body was read.
    pub(crate) reads: usize,
    answer: Option<Arc<Mutex<Response>>>,
}

impl Http {
    /// What was answered to the last request.
    pub(crate) fn take(&mut self) -> Option<Response> {
        let answer = self.answer.take()?;
        Some(
            answer
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
        )
    }
}

/// Headers.
pub struct Fields(Vec<(String, Vec<u8>)>);
/// A body that is read.
pub struct Incoming(Vec<Piece>);
/// A body that is written.
pub struct Outgoing(Arc<Mutex<Response>>);
/// Where the response goes.
pub struct Out;
/// A response before it is handed over.
pub struct Begun(Arc<Mutex<Response>>);
/// Why a stream broke.
pub struct Broken;

impl variables::Host for Host {
    fn get(&mut self, name: String) -> Result<std::result::Result<String, variables::Error>> {
        let value = self
            .http
            .config
            .clone()
            .filter(|_| name == "foremind_config");
        Ok(value.ok_or(variables::Error::Undefined(name)))
    }
}

impl error::Host for Host {}

impl error::HostError for Host {
    fn to_debug_string(&mut self, _: Resource<Broken>) -> Result<String> {
        Ok("the connection broke".to_owned())
    }

    fn drop(&mut self, broken: Resource<Broken>) -> Result<()> {
        self.table.delete(broken)?;
        Ok(())
    }
}

impl streams::Host for Host {}

impl streams::HostInputStream for Host {
    fn blocking_read(
        &mut self,
        stream: Resource<Incoming>,
        len: u64,
    ) -> Result<std::result::Result<Vec<u8>, StreamError>> {
        self.http.reads += 1;
        let most = usize::try_from(len)?;
        loop {
            let pieces = &mut self.table.get_mut(&stream)?.0;
            match pieces.first_mut() {
                None => return Ok(Err(StreamError::Closed)),
                Some(Piece::Bytes(bytes)) if bytes.is_empty() => {
                    pieces.remove(0);
                }
                Some(Piece::Bytes(bytes)) => {
                    return Ok(Ok(bytes.drain(..most.min(bytes.len())).collect()));
                }
                Some(Piece::Endless(bytes)) => return Ok(Ok(vec![0; most.min(*bytes)])),
                Some(Piece::Wait(ms)) => {
                    let ms = *ms;
                    pieces.remove(0);
                    self.wait(ms);
                }
                Some(Piece::Break) => {
                    let broken = self.table.push(Broken)?;
                    return Ok(Err(StreamError::LastOperationFailed(broken)));
                }
            }
        }
    }

    fn drop(&mut self, stream: Resource<Incoming>) -> Result<()> {
        self.table.delete(stream)?;
        Ok(())
    }
}

impl streams::HostOutputStream for Host {
    fn blocking_write_and_flush(
        &mut self,
        stream: Resource<Outgoing>,
        contents: Vec<u8>,
    ) -> Result<std::result::Result<(), StreamError>> {
        if contents.len() > 4096 {
            return Err(Trap::msg("a blocking write takes 4096 bytes"));
        }
        let response = &self.table.get(&stream)?.0;
        let mut response = response.lock().unwrap_or_else(PoisonError::into_inner);
        response.body.extend(contents);
        Ok(Ok(()))
    }

    fn drop(&mut self, stream: Resource<Outgoing>) -> Result<()> {
        self.table.delete(stream)?;
        Ok(())
    }
}

impl types::Host for Host {}

type Entries = Vec<(String, Vec<u8>)>;

impl types::HostFields for Host {
    fn from_list(
        &mut self,
        entries: Entries,
    ) -> Result<std::result::Result<Resource<Fields>, HeaderError>> {
        let plain = |(name, value): &(String, Vec<u8>)| {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_graphic())
                && value.iter().all(|byte| (0x20..0x7f).contains(byte))
        };
        if !entries.iter().all(plain) {
            return Ok(Err(HeaderError::InvalidSyntax));
        }
        Ok(Ok(self.table.push(Fields(entries))?))
    }

    fn entries(&mut self, fields: Resource<Fields>) -> Result<Entries> {
        Ok(self.table.get(&fields)?.0.clone())
    }

    fn drop(&mut self, fields: Resource<Fields>) -> Result<()> {
        self.table.delete(fields)?;
        Ok(())
    }
}

impl types::HostIncomingRequest for Host {
    fn method(&mut self, request: Resource<Request>) -> Result<Method> {
        Ok(match self.table.get(&request)?.method.as_str() {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            "POST" => Method::Post,
            "PUT" => Method::Put,
            "DELETE" => Method::Delete,
            "PATCH" => Method::Patch,
            "OPTIONS" => Method::Options,
            other => Method::Other(other.to_owned()),
        })
    }

    fn path_with_query(&mut self, request: Resource<Request>) -> Result<Option<String>> {
        Ok(Some(self.table.get(&request)?.target.clone()))
    }

    fn headers(&mut self, request: Resource<Request>) -> Result<Resource<Fields>> {
        let headers = self.table.get(&request)?.headers.clone();
        Ok(self.table.push(Fields(headers))?)
    }

    fn consume(
        &mut self,
        request: Resource<Request>,
    ) -> Result<std::result::Result<Resource<Incoming>, ()>> {
        let body = std::mem::take(&mut self.table.get_mut(&request)?.body);
        Ok(Ok(self.table.push(Incoming(body))?))
    }

    fn drop(&mut self, request: Resource<Request>) -> Result<()> {
        self.table.delete(request)?;
        Ok(())
    }
}

impl types::HostIncomingBody for Host {
    fn stream(
        &mut self,
        body: Resource<Incoming>,
    ) -> Result<std::result::Result<Resource<Incoming>, ()>> {
        let pieces = std::mem::take(&mut self.table.get_mut(&body)?.0);
        Ok(Ok(self.table.push(Incoming(pieces))?))
    }

    fn drop(&mut self, body: Resource<Incoming>) -> Result<()> {
        self.table.delete(body)?;
        Ok(())
    }
}

impl types::HostResponseOutparam for Host {
    fn set(
        &mut self,
        out: Resource<Out>,
        response: std::result::Result<Resource<Begun>, ErrorCode>,
    ) -> Result<()> {
        self.table.delete(out)?;
        let response = response.map_err(|_| Trap::msg("the handler gave up"))?;
        self.http.answer = Some(self.table.delete(response)?.0);
        Ok(())
    }

    fn drop(&mut self, out: Resource<Out>) -> Result<()> {
        self.table.delete(out)?;
        Ok(())
    }
}

impl types::HostOutgoingResponse for Host {
    fn new(&mut self, headers: Resource<Fields>) -> Result<Resource<Begun>> {
        let Fields(headers) = self.table.delete(headers)?;
        let headers = headers.into_iter().map(|(name, value)| {
            let value = String::from_utf8(value)?;
            Ok((name, value))
        });
        let response = Response {
            status: 200,
            headers: headers.collect::<Result<_>>()?,
            body: Vec::new(),
        };
        Ok(self.table.push(Begun(Arc::new(Mutex::new(response))))?)
    }

    fn set_status_code(
        &mut self,
        response: Resource<Begun>,
        status: u16,
    ) -> Result<std::result::Result<(), ()>> {
        let response = &self.table.get(&response)?.0;
        response
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .status = status;
        Ok(Ok(()))
    }

    fn body(
        &mut self,
        response: Resource<Begun>,
    ) -> Result<std::result::Result<Resource<Outgoing>, ()>> {
        let response = Arc::clone(&self.table.get(&response)?.0);
        Ok(Ok(self.table.push(Outgoing(response))?))
    }

    fn drop(&mut self, response: Resource<Begun>) -> Result<()> {
        self.table.delete(response)?;
        Ok(())
    }
}

impl types::HostOutgoingBody for Host {
    fn write(
        &mut self,
        body: Resource<Outgoing>,
    ) -> Result<std::result::Result<Resource<Outgoing>, ()>> {
        let response = Arc::clone(&self.table.get(&body)?.0);
        Ok(Ok(self.table.push(Outgoing(response))?))
    }

    fn finish(
        &mut self,
        body: Resource<Outgoing>,
        _: Option<Resource<Fields>>,
    ) -> Result<std::result::Result<(), ErrorCode>> {
        self.table.delete(body)?;
        Ok(Ok(()))
    }

    fn drop(&mut self, body: Resource<Outgoing>) -> Result<()> {
        self.table.delete(body)?;
        Ok(())
    }
}
