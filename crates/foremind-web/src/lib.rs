//! The core as a wasm module for JavaScript hosts: the machines of `foremind-memory`, with their steps and
//! replies as plain objects and their bytes as `Uint8Array`.
//!
//! Nothing here waits, reads or writes: the npm package's driver moves the bytes. Every error leaves as
//! `{ code, message }`, made in one place; anything else that is thrown is a trap, after which the instance
//! must not be called again.

mod border;
mod task_wire;
mod values;
mod wire;

use foremind_memory::{Audience, Chore, HeadError, Memory, Op, OpenStep, Opening, Survey};
use foremind_types::{Error, ErrorCode, HeadId, Scope};
use wasm_bindgen::prelude::*;

use crate::border::{JSON_OF_HOST, ambient, receive, receive_tagged, refuse, send};
use crate::task_wire::{TaskIn, TaskReplyIn, TaskStepOut};
use crate::wire::{CoreOptions, OpenReplyIn, OpenStepOut, ReplyIn, StepOut, SurveyOptions};

/// Shows panics in the console.
#[cfg(feature = "development")]
#[wasm_bindgen(start)]
pub fn show_panics() {
    console_error_panic_hook::set_once();
}

/// Hands the router its data files (`foremind_data.txt`), once for each instance of the module and before anything is
/// opened: so they need not stand in the module.
///
/// # Errors
/// `invalid-argument` when they are of another version.
#[wasm_bindgen(js_name = installData)]
pub fn install_data(bundle: String) -> Result<(), JsValue> {
    foremind_memory::json::install(JSON_OF_HOST);
    foremind_memory::install_data(bundle)
        .map_err(|error| refuse(&Error::new(ErrorCode::InvalidArgument, error.to_string())))
}

/// A router without its data would let modifiers pass.
fn equipped() -> Result<(), JsValue> {
    if foremind_memory::has_data() {
        return Ok(());
    }
    Err(refuse(&Error::new(
        ErrorCode::Internal,
        "the data file was not installed before opening",
    )))
}

/// Every error that the core can give, as `{ code, message, fault }[]`, mapped as any error is on its way out.
///
/// # Errors
/// None: the signature is that of every border function.
#[wasm_bindgen]
pub fn errors() -> Result<JsValue, JsValue> {
    let all: Vec<_> = ErrorCode::ALL
        .iter()
        .map(|code| wire::ErrorRow::new(*code))
        .collect();
    send(&all)
}

/// Throws the error of a code: what a test of the border calls for each row of [`errors`].
///
/// # Errors
/// Always: the error of that code, or `invalid-argument` when there is none.
#[wasm_bindgen(js_name = throwError)]
pub fn throw_error(code: &str) -> Result<(), JsValue> {
    let known = ErrorCode::ALL.iter().find(|known| known.as_str() == code);
    Err(refuse(&match known {
        Some(code) => Error::new(*code, code.as_str()),
        None => Error::new(ErrorCode::InvalidArgument, "no such error code"),
    }))
}

/// Opens a memory, or makes one where there is none. One for each opening.
#[wasm_bindgen]
#[derive(Debug)]
pub struct CoreOpening {
    opening: Opening,
    opened: Option<Memory>,
}

#[wasm_bindgen]
impl CoreOpening {
    /// Takes `{ wrap: 'host', key: Uint8Array(32), create } | { wrap: 'external', create } |
    /// { wrap: 'passphrase', passphrase, create }`, each with `profileFirst` and `minGeneration` if wanted.
    ///
    /// # Errors
    /// `invalid-argument`.
    #[wasm_bindgen(constructor)]
    pub fn new(options: JsValue) -> Result<CoreOpening, JsValue> {
        equipped()?;
        let options: CoreOptions = receive(options, "the options")?;
        let options = options.into_open().map_err(|error| refuse(&error))?;
        Ok(Self {
            opening: Opening::new(options),
            opened: None,
        })
    }

    /// Says what is needed next; `reply` answers the step before, `{ kind: 'begin' }` at first. After
    /// `{ kind: 'opened' }` the memory is there to be taken.
    ///
    /// # Errors
    /// `invalid-argument` when an argument has another shape; how the opening ended is a step.
    pub fn step(
        &mut self,
        reply: JsValue,
        now_ms: f64,
        utc_offset_min: f64,
        entropy: &[u8],
    ) -> Result<JsValue, JsValue> {
        let at = ambient(now_ms, utc_offset_min, entropy)?;
        let reply: OpenReplyIn = receive_tagged(&reply, "kind", "the reply")?;
        let reply = reply.into_reply().map_err(|error| refuse(&error))?;
        let step = match self.opening.step(reply, &at) {
            OpenStep::Done(Ok(memory)) => {
                self.opened = Some(memory);
                OpenStepOut::Opened {}
            }
            step => OpenStepOut::from(step),
        };
        send(&step)
    }

    /// The profile as it is stored, after `{ kind: 'profile' }` and before the memory is there: a response as
    /// `profile` has it.
    ///
    /// # Errors
    /// `invalid-argument` for a scope or budget that is none, `internal` before.
    pub fn profile(
        &self,
        scope: JsValue,
        budget_tokens: u32,
        device: bool,
        now_ms: f64,
    ) -> Result<JsValue, JsValue> {
        let at = ambient(now_ms, 0.0, &[0; 32])?;
        let audience = if device {
            Audience::Device
        } else {
            Audience::Remote
        };
        let scope: Scope = receive(scope, "the scope")?;
        let profile = self
            .opening
            .profile(&scope, budget_tokens, audience, at.now_ms);
        send(&profile.map_err(|error| refuse(&error))?)
    }

    /// The memory, once.
    ///
    /// # Errors
    /// `internal` before `opened`, and when it was taken already.
    pub fn take(&mut self) -> Result<CoreMemory, JsValue> {
        match self.opened.take() {
            Some(memory) => Ok(CoreMemory {
                memory,
                ops: Running::default(),
                chores: Running::default(),
                next_op: 0,
            }),
            None => Err(refuse(&Error::new(
                ErrorCode::Internal,
                "there is no opened memory to take",
            ))),
        }
    }
}

/// One open memory and its operations under way.
#[wasm_bindgen]
#[derive(Debug)]
pub struct CoreMemory {
    memory: Memory,
    ops: Running<Op>,
    chores: Running<Chore>,
    next_op: u32,
}

/// What runs at a time, by number: a few.
#[derive(Debug)]
struct Running<T>(Vec<(u32, Box<T>)>);

impl<T> Default for Running<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Running<T> {
    fn insert(&mut self, number: u32, one: T) {
        self.0.push((number, Box::new(one)));
    }

    fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        let found = self.0.iter_mut().find(|(other, _)| *other == number);
        found.map(|(_, one)| &mut **one)
    }

    fn remove(&mut self, number: u32) {
        self.0.retain(|(other, _)| *other != number);
    }
}

#[wasm_bindgen]
impl CoreMemory {
    /// Starts an operation; its number is for `step` and `dropOp`.
    ///
    /// # Errors
    /// `invalid-argument` when the request is none.
    pub fn begin(&mut self, request: JsValue) -> Result<u32, JsValue> {
        let request = receive_tagged(&request, "verb", "the request")?;
        let number = self.next_op;
        self.next_op = self.next_op.wrapping_add(1);
        self.ops.insert(number, self.memory.begin(request));
        Ok(number)
    }

    /// Says what an operation needs next; `reply` answers the step before, `{ kind: 'begin' }` at first.
    ///
    /// # Errors
    /// `invalid-argument` when an argument has another shape; how the operation ended is a step.
    pub fn step(
        &mut self,
        op: u32,
        reply: JsValue,
        now_ms: f64,
        utc_offset_min: f64,
        entropy: &[u8],
    ) -> Result<JsValue, JsValue> {
        let at = ambient(now_ms, utc_offset_min, entropy)?;
        let reply: ReplyIn = receive_tagged(&reply, "kind", "the reply")?;
        let Some(op) = self.ops.get_mut(op) else {
            let error = Error::new(ErrorCode::Internal, "there is no such operation");
            return Err(refuse(&error));
        };
        send(&StepOut::from(self.memory.step(op, reply.into(), &at)))
    }

    /// Forgets an operation, finished or not. A commit under way must have been answered first.
    #[wasm_bindgen(js_name = dropOp)]
    pub fn drop_op(&mut self, op: u32) {
        self.ops.remove(op);
    }

    /// Starts a task (export, import, verify, rekey); its number is for `stepTask` and `dropTask`.
    ///
    /// # Errors
    /// `invalid-argument` when the task is none.
    #[wasm_bindgen(js_name = beginTask)]
    pub fn begin_task(&mut self, task: JsValue) -> Result<u32, JsValue> {
        let task: TaskIn = receive_tagged(&task, "task", "the task")?;
        let task = task.into_task().map_err(|error| refuse(&error))?;
        let number = self.next_op;
        self.next_op = self.next_op.wrapping_add(1);
        self.chores.insert(number, self.memory.begin_task(task));
        Ok(number)
    }

    /// Says what a task needs next, as `step` does for an operation.
    ///
    /// # Errors
    /// `invalid-argument` when an argument has another shape; how the task ended is a step.
    #[wasm_bindgen(js_name = stepTask)]
    pub fn step_task(
        &mut self,
        task: u32,
        reply: JsValue,
        now_ms: f64,
        utc_offset_min: f64,
        entropy: &[u8],
    ) -> Result<JsValue, JsValue> {
        let at = ambient(now_ms, utc_offset_min, entropy)?;
        let reply: TaskReplyIn = receive_tagged(&reply, "kind", "the reply")?;
        let reply = reply.into_reply().map_err(|error| refuse(&error))?;
        let Some(chore) = self.chores.get_mut(task) else {
            let error = Error::new(ErrorCode::Internal, "there is no such task");
            return Err(refuse(&error));
        };
        send(&TaskStepOut::of(self.memory.step_task(chore, reply, &at)))
    }

    /// Forgets a task, finished or not.
    #[wasm_bindgen(js_name = dropTask)]
    pub fn drop_task(&mut self, task: u32) {
        self.chores.remove(task);
    }

    /// Gives the router its n-gram head, which judges what words leave open in other languages than English.
    ///
    /// # Errors
    /// `invalid-argument` when the bytes are no such file of this version.
    #[wasm_bindgen(js_name = useNgrams)]
    pub fn use_ngrams(&mut self, file: &[u8]) -> Result<(), JsValue> {
        self.memory.use_ngrams(file).map_err(|error| misfit(&error))
    }

    /// Says which head of the encoder judges what words leave open in English; absent: none.
    ///
    /// # Errors
    /// `invalid-argument` for a head of another version.
    #[wasm_bindgen(js_name = useHead)]
    pub fn use_head(&mut self, head: Option<String>) -> Result<(), JsValue> {
        let used = self.memory.use_head(head.map(HeadId));
        used.map_err(|error| misfit(&error))
    }

    /// How many commits led to what this memory knows.
    #[wasm_bindgen(getter)]
    #[allow(clippy::cast_precision_loss, reason = "2^53 commits are out of reach")]
    pub fn generation(&self) -> f64 {
        self.memory.generation() as f64
    }

    /// Which memory this is: 32 hexadecimal digits.
    #[wasm_bindgen(getter, js_name = memoryId)]
    pub fn memory_id(&self) -> String {
        self.memory.memory_id().to_string()
    }
}

/// Looks through a memory that may not open, and repairs it if asked.
#[wasm_bindgen]
#[derive(Debug)]
pub struct CoreSurvey(Survey);

#[wasm_bindgen]
impl CoreSurvey {
    /// Takes the options of an opening without `create`, and `repair`.
    ///
    /// # Errors
    /// `invalid-argument`, `key-missing`.
    #[wasm_bindgen(constructor)]
    pub fn new(options: JsValue) -> Result<CoreSurvey, JsValue> {
        equipped()?;
        let options: SurveyOptions = receive(options, "the options")?;
        let survey = options.into_survey().map_err(|error| refuse(&error))?;
        Ok(Self(survey))
    }

    /// Says what is needed next, as `stepTask` does.
    ///
    /// # Errors
    /// `invalid-argument` when an argument has another shape; how it ended is a step.
    pub fn step(
        &mut self,
        reply: JsValue,
        now_ms: f64,
        utc_offset_min: f64,
        entropy: &[u8],
    ) -> Result<JsValue, JsValue> {
        let at = ambient(now_ms, utc_offset_min, entropy)?;
        let reply: TaskReplyIn = receive_tagged(&reply, "kind", "the reply")?;
        let reply = reply.into_reply().map_err(|error| refuse(&error))?;
        send(&TaskStepOut::of(self.0.step(reply, &at)))
    }
}

fn misfit(error: &HeadError) -> JsValue {
    refuse(&Error::new(ErrorCode::InvalidArgument, error.to_string()))
}
