//! Every name on the wire, in one place. Names that begin with `x_` or `x/` are ours; the others are Orchard's as far as is known.

pub const ID: &str = "id";
pub const METHOD: &str = "method";
pub const PARAMS: &str = "params";
pub const RESULT: &str = "result";
pub const ERROR: &str = "error";

pub const DESCRIBE: &str = "describe";
pub const CONFIGURE: &str = "configure";
pub const EXECUTE: &str = "execute";
pub const SHUTDOWN: &str = "shutdown";
pub const PING: &str = "x/ping";
pub const LOOKUP: &str = "x/lookup";
pub const VALIDATE: &str = "x/validate";
pub const CANCEL: &str = "x/cancel";
pub const PROGRESS: &str = "x/progress";

pub const SCHEMA: &str = "schema";
pub const CONFIG: &str = "config";
pub const ACTION: &str = "action";
pub const ATTRS: &str = "attrs";
pub const OUTPUTS: &str = "outputs";
pub const UNDO: &str = "undo";
/// Read as `undo`.
pub const INVERSE: &str = "inverse";

pub const CODE: &str = "code";
pub const MESSAGE: &str = "message";
pub const DETAIL: &str = "detail";
pub const RETRY_AFTER_MS: &str = "x_retry_after_ms";
pub const STATE: &str = "x_state";
pub const ERROR_UNDO: &str = "x_undo";
pub const ERROR_DIAGNOSTICS: &str = "x_diagnostics";
pub const DIAGNOSTICS: &str = "diagnostics";
pub const SEVERITY: &str = "severity";
pub const PATH: &str = "path";

pub const CALL: &str = "x_call";
pub const RUN: &str = "run";
pub const STEP: &str = "step";
pub const ATTEMPT: &str = "attempt";
pub const KEY: &str = "key";
pub const DEADLINE_MS: &str = "deadline_ms";
pub const TRACEPARENT: &str = "traceparent";
pub const REASON: &str = "reason";
pub const GRACE_MS: &str = "grace_ms";
pub const DONE: &str = "done";
pub const TOTAL: &str = "total";
pub const UNKNOWN: &str = "unknown";
pub const LOOKUP_STATE: &str = "state";

pub const HOST: &str = "x_host";
pub const NAME: &str = "name";
pub const VERSION: &str = "version";
pub const PROTOCOL: &str = "protocol";
pub const EXTENSIONS: &str = "extensions";
pub const MAX_IN_FLIGHT: &str = "max_in_flight";
pub const MAX_FRAME_BYTES: &str = "max_frame_bytes";

pub const ACTIONS: &str = "actions";
pub const PROTOCOLS: &str = "x_protocols";
pub const DECLARED: &str = "x_extensions";
pub const CALL_CONTEXT: &str = "call_context";
pub const CANCEL_EXTENSION: &str = "cancel";
pub const LOOKUP_EXTENSION: &str = "lookup";
pub const PING_EXTENSION: &str = "ping";
pub const PROGRESS_EXTENSION: &str = "progress";
pub const UNDO_OPTIONS: &str = "undo_options";
pub const VALIDATE_EXTENSION: &str = "validate";
pub const REQUIRE: &str = "require";
pub const DESCRIPTION: &str = "description";
pub const TYPE: &str = "type";
pub const REQUIRED: &str = "required";
pub const DEFAULT: &str = "default";
pub const SENSITIVE: &str = "x_sensitive";
pub const IS_PATH: &str = "x_path";
pub const DEPRECATED: &str = "x_deprecated";
pub const CHOICES: &str = "x_enum";
pub const IDEMPOTENT: &str = "x_idempotent";
pub const TIMEOUT_MS: &str = "x_timeout_ms";
pub const EXCLUSIVE: &str = "x_exclusive";
pub const RETURNS_UNDO: &str = "x_returns_undo";

pub const ANY_VALUE: &str = "value";
pub const ANY_TYPE: &str = "type";
pub const CTY_DYNAMIC: &str = "dynamic";

pub const LEVEL: &str = "level";
pub const MSG: &str = "msg";
