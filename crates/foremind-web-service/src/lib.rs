//! The service as a wasm module: requests in, steps out, as plain objects with their bytes as `Uint8Array`.
//!
//! It opens no memory. What a step wants done in one goes to whoever has it; on Workers that is a Durable Object.
//! Errors leave as `{ code, message }`; anything else that is thrown is a trap, after which the instance must not be
//! called again.

use std::collections::BTreeMap;

use foremind_engine::Response;
use foremind_service::{
    Answer, Call, Config, HttpRequest, HttpResponse, Replica, Reply, Service, Step, Work,
};
use foremind_types::{Ambient, Error, ErrorCode, Receipt};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use wasm_bindgen::prelude::*;

/// One service and its requests under way.
#[wasm_bindgen]
#[derive(Debug)]
pub struct CoreService {
    service: Service,
    calls: BTreeMap<u32, Call>,
    next: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestIn {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: ByteBuf,
}

#[derive(Serialize)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
enum StepOut {
    Run {
        space: String,
        key: ByteBuf,
        create: bool,
        work: Work,
    },
    Get {
        name: String,
    },
    Swap {
        name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        expected: Option<ByteBuf>,
        value: ByteBuf,
    },
    Done {
        status: u16,
        headers: Vec<(String, String)>,
        body: ByteBuf,
    },
}

#[derive(Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
#[allow(clippy::large_enum_variant, reason = "lives for one call")]
enum ReplyIn {
    Begin {},
    Absent {},
    /// As JSON, like the next: it has hundreds of fields, and crossing one by one takes longer than the recall.
    Response {
        response: String,
    },
    /// Of a recall or a profile: a response whose kind goes without saying is read without a detour.
    Prompt {
        prompt: String,
    },
    Late {
        prompt: String,
    },
    Replica {
        prompt: String,
        generation: u64,
        age_ms: u64,
        #[serde(default)]
        error: Option<Error>,
    },
    File {
        file: ByteBuf,
    },
    Removed {
        #[serde(default)]
        receipt: Option<Box<Receipt>>,
    },
    RunFailed {
        error: Error,
    },
    Value {
        #[serde(default)]
        value: Option<ByteBuf>,
    },
    ValueFailed {
        error: Error,
    },
    Swapped {
        swapped: bool,
    },
    SwapFailed {
        error: Error,
    },
}

/// What a memory answered, as JSON.
fn read<T: DeserializeOwned>(json: &str) -> Result<T, Error> {
    // The text may hold facts, so the parser's words are not passed on.
    serde_json::from_str(json).map_err(|_| {
        Error::new(
            ErrorCode::Internal,
            "the memory's answer cannot be read; please report this",
        )
    })
}

impl From<ReplyIn> for Reply {
    fn from(reply: ReplyIn) -> Self {
        match reply {
            ReplyIn::Begin {} => Self::Begin,
            ReplyIn::Absent {} => Self::Ran(Ok(Answer::Absent)),
            ReplyIn::Response { response } => Self::Ran(read(&response).map(Answer::Response)),
            ReplyIn::Prompt { prompt } => {
                Self::Ran(read(&prompt).map(|prompt| Answer::Response(Response::Recall(prompt))))
            }
            ReplyIn::Late { prompt } => Self::Ran(read(&prompt).map(Answer::Late)),
            ReplyIn::Replica {
                prompt,
                generation,
                age_ms,
                error,
            } => Self::Ran(read(&prompt).map(|prompt| {
                Answer::Replica(Replica {
                    prompt,
                    generation,
                    age_ms,
                    instead_of: error.map(|error| error.code),
                })
            })),
            ReplyIn::File { file } => Self::Ran(Ok(Answer::File(file.into_vec()))),
            ReplyIn::Removed { receipt } => Self::Ran(Ok(Answer::Removed(receipt))),
            ReplyIn::RunFailed { error } => Self::Ran(Err(error)),
            ReplyIn::Value { value } => Self::Value(Ok(value.map(ByteBuf::into_vec))),
            ReplyIn::ValueFailed { error } => Self::Value(Err(error)),
            ReplyIn::Swapped { swapped } => Self::Swapped(Ok(swapped)),
            ReplyIn::SwapFailed { error } => Self::Swapped(Err(error)),
        }
    }
}

#[wasm_bindgen]
impl CoreService {
    /// Takes the configuration, JSON.
    ///
    /// # Errors
    /// `invalid-argument` with what is wrong, never with a value.
    #[wasm_bindgen(constructor)]
    pub fn new(config: &str) -> Result<CoreService, JsValue> {
        let config = Config::from_json(config.as_bytes())
            .map_err(|error| refuse(&Error::new(ErrorCode::InvalidArgument, error.to_string())))?;
        Ok(Self {
            service: Service::new(config),
            calls: BTreeMap::new(),
            next: 0,
        })
    }

    /// Begins a request, `{ method, target, headers: [name, value][], body }`; its number is for `step` and `drop`.
    ///
    /// # Errors
    /// `invalid-argument` when it has another shape.
    pub fn begin(&mut self, request: JsValue) -> Result<u32, JsValue> {
        let request: RequestIn = receive(request, "the request")?;
        let call = self.service.begin(HttpRequest {
            method: request.method,
            target: request.target,
            headers: request.headers,
            body: request.body.into_vec(),
        });
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.calls.insert(number, call);
        Ok(number)
    }

    /// Says what a request needs next; `reply` answers the step before, `{ kind: 'begin' }` at first.
    ///
    /// # Errors
    /// `invalid-argument` when an argument has another shape.
    pub fn step(
        &mut self,
        call: u32,
        reply: JsValue,
        now_ms: f64,
        entropy: &[u8],
    ) -> Result<JsValue, JsValue> {
        let at = ambient(now_ms, entropy)?;
        let reply: ReplyIn = receive(reply, "the reply")?;
        let Some(call) = self.calls.get_mut(&call) else {
            return Err(refuse(&Error::new(
                ErrorCode::Internal,
                "there is no such request",
            )));
        };
        let step = match self.service.step(call, reply.into(), &at) {
            Step::Run {
                place,
                create,
                work,
            } => StepOut::Run {
                space: place.space,
                key: ByteBuf::from(place.key.as_bytes().to_vec()),
                create,
                work,
            },
            Step::Get { name } => StepOut::Get { name },
            Step::Swap {
                name,
                expected,
                value,
            } => StepOut::Swap {
                name,
                expected: expected.map(ByteBuf::from),
                value: ByteBuf::from(value),
            },
            Step::Done(response) => done(response),
            _ => {
                return Err(refuse(&Error::new(
                    ErrorCode::Internal,
                    "a step of a later build",
                )));
            }
        };
        send(&step)
    }

    /// The last step of a request whose body did not come in time.
    ///
    /// # Errors
    /// None: the signature is that of every border function.
    #[wasm_bindgen(js_name = tooSlow)]
    pub fn too_slow() -> Result<JsValue, JsValue> {
        send(&done(HttpResponse::too_slow()))
    }

    /// Forgets a request, finished or not.
    pub fn drop(&mut self, call: u32) {
        self.calls.remove(&call);
    }
}

fn done(response: HttpResponse) -> StepOut {
    StepOut::Done {
        status: response.status,
        headers: response.headers,
        body: ByteBuf::from(response.body),
    }
}

fn send(step: &StepOut) -> Result<JsValue, JsValue> {
    let serializer = serde_wasm_bindgen::Serializer::new().serialize_maps_as_objects(true);
    step.serialize(&serializer)
        .map_err(|_| refuse(&Error::new(ErrorCode::Internal, "a step cannot cross")))
}

fn receive<T: DeserializeOwned>(value: JsValue, what: &str) -> Result<T, JsValue> {
    serde_wasm_bindgen::from_value(value).map_err(|_| {
        refuse(&Error::new(
            ErrorCode::InvalidArgument,
            format!("{what} has an unknown shape, or a field of another type or range"),
        ))
    })
}

fn refuse(error: &Error) -> JsValue {
    serde_wasm_bindgen::to_value(error).unwrap_or_else(|_| JsValue::from_str(error.code.as_str()))
}

fn ambient(now_ms: f64, entropy: &[u8]) -> Result<Ambient, JsValue> {
    let invalid = |message| refuse(&Error::new(ErrorCode::InvalidArgument, message));
    let entropy = <[u8; 32]>::try_from(entropy).map_err(|_| invalid("entropy must be 32 bytes"))?;
    // The range of ECMAScript's time values, so the cast is exact.
    if !(-8.64e15..=8.64e15).contains(&now_ms) {
        return Err(invalid("the time must be Unix milliseconds"));
    }
    #[allow(clippy::cast_possible_truncation, reason = "checked against the range")]
    Ok(Ambient {
        now_ms: now_ms as i64,
        utc_offset_min: 0,
        entropy,
    })
}
