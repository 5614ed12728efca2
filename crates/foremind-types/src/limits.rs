//! Every limit of foremind in one place. Bytes are UTF-8 bytes unless a name says otherwise.

/// Longest statement that becomes one record.
pub const STATEMENT_BYTES: usize = 8 * 1024;
/// Longest text of one `ingest` turn or one `remember`; longer input is refused, never cut silently.
pub const TURN_BYTES: usize = 256 * 1024;
/// Most statements taken from one turn.
pub const STATEMENTS_PER_TURN: usize = 512;
/// Longest recall query; what is beyond is ignored, as the embedder would ignore it anyway.
pub const QUERY_BYTES: usize = 16 * 1024;
/// Longest id of a user, project, thread, agent or turn.
pub const NAME_BYTES: usize = 128;
/// Largest token budget of one recall.
pub const BUDGET_TOKENS: u32 = 1_000_000;
/// Most items of the visible profile.
pub const PROFILE_ITEMS: usize = 20;
/// Share of the recall budget that the visible profile may take, in percent.
pub const PROFILE_BUDGET_PERCENT: u32 = 60;
/// Most context items of one recall.
pub const CONTEXT_ITEMS: usize = 12;
/// Most context items of one domain, unless the query names that domain.
pub const CONTEXT_ITEMS_PER_DOMAIN: usize = 4;
/// Most judgements that wait for a host at once; beyond, the oldest keep waiting outside the queue.
pub const PENDING_JUDGEMENTS: usize = 256;
/// Most records of one memory.
pub const RECORDS: usize = 1_000_000;
/// Largest single value written to a store; larger data is split.
pub const VALUE_BYTES: usize = 1024 * 1024 - 4096;
/// Most texts of one embedding request.
pub const EMBED_TEXTS: usize = 8;
