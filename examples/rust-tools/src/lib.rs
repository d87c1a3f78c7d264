//! A tools plugin in Rust. `word_count` counts the words of a text, and `shout` returns a text in
//! capital letters, followed by the `suffix` of the configuration.
//!
//! All functions of an instance run on the gateway's reactor thread, one call at a time. Therefore
//! no locks are needed, and no function may block. No panic may unwind into the gateway: each
//! function that the gateway calls and that could panic runs inside `guard`.
#![deny(unsafe_op_in_unsafe_fn)]

mod abi;
mod json;

use abi::*;
use json::Value;
use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::mem::size_of;
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::{addr_of, addr_of_mut, null};

const ID: &str = "rust-tools";
const VERSION: &str = "1.0.0"; // also in rust-tools.plugin.toml

const TOOLS: &str = concat!(
    r#"[{"name":"word_count","description":"Counts the words of a text.","#,
    r#""inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]},"#,
    r#""annotations":{"readOnlyHint":true}},"#,
    r#"{"name":"shout","description":"Returns a text in capital letters.","#,
    r#""inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]},"#,
    r#""annotations":{"readOnlyHint":true}}]"#
);

/// The gateway validates the configuration against this JSON Schema.
const SCHEMA: &str = concat!(
    r#"{"type":"object","additionalProperties":false,"properties":{"#,
    r#""suffix":{"type":"string","maxLength":16,"description":"follows the text of shout"},"#,
    r#""rehearse":{"type":"boolean","description":"shout panics if its text is \"panic\""}}}"#
);

// ---- tools ----

struct Config {
    suffix: String,
    rehearse: bool,
}

fn read_config(json: &[u8]) -> Result<Config, String> {
    let mut config = Config { suffix: "!".to_string(), rehearse: false };
    for (name, value) in json::read_object(json)? {
        match (name.as_str(), value) {
            ("suffix", Value::Text(suffix)) => config.suffix = suffix,
            ("rehearse", Value::Bool(rehearse)) => config.rehearse = rehearse,
            _ => return Err(format!("the key {:?} is unknown or has a wrong type", name)),
        }
    }
    Ok(config)
}

/// Returns the argument `text`, or an error for the caller of the tool.
fn text_argument(arguments: &[u8]) -> Result<String, String> {
    let members = json::read_object(arguments)
        .map_err(|reason| format!("the arguments are invalid: {}", reason))?;
    let mut texts = members.into_iter().filter(|(name, _)| name == "text").map(|(_, value)| value);
    match (texts.next(), texts.next()) {
        (Some(Value::Text(text)), None) => Ok(text),
        (Some(_), None) => Err("the argument \"text\" must be a string".to_string()),
        (Some(_), Some(_)) => Err("the argument \"text\" occurs more than once".to_string()),
        (None, _) => Err("the argument \"text\" is missing".to_string()),
    }
}

fn word_count(text: &str) -> String {
    text.split_whitespace().count().to_string()
}

fn shout(config: &Config, text: &str) -> String {
    if config.rehearse && text == "panic" {
        panic!("rehearsal of a panic");
    }
    text.to_uppercase() + &config.suffix
}

/// Returns the `result` object of tools/call.
fn tool_result(outcome: Result<String, String>) -> String {
    let (text, is_error) = match &outcome {
        Ok(text) => (text, false),
        Err(text) => (text, true),
    };
    let mut json = r#"{"content":[{"type":"text","text":"#.to_string();
    json::write_string(&mut json, text);
    json.push_str(if is_error { r#"}],"isError":true}"# } else { "}]}" });
    json
}

// ---- the ABI boundary ----

struct Failure {
    code: bh_status,
    text: String,
}

fn failure<T>(code: bh_status, text: impl Into<String>) -> Result<T, Failure> {
    Err(Failure { code, text: text.into() })
}

/// Runs the body of a function that the gateway calls. An error, or a panic, becomes the returned
/// status, and its text is written to the caller's buffer.
///
/// # Safety
/// `error` is NULL or points to a bh_error.
unsafe fn guard(
    error: *mut bh_error,
    body: impl FnOnce() -> Result<bh_status, Failure>,
) -> bh_status {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(status)) => return status,
        Ok(Err(failure)) => failure,
        Err(payload) => {
            // Rust has written the reason to stderr. Dropping the payload could panic again.
            if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
                std::mem::forget(second);
            }
            Failure {
                code: BH_E_INTERNAL,
                text: "the plugin panicked; stderr has the reason".to_string(),
            }
        }
    };
    unsafe { write_error(error, &failure) };
    failure.code
}

/// # Safety
/// `error` is NULL or points to a bh_error.
unsafe fn write_error(error: *mut bh_error, failure: &Failure) {
    if error.is_null() || !unsafe { has!(bh_error, error, text) } {
        return;
    }
    let mut n = failure.text.len().min(layout::bh_error::text.1);
    while !failure.text.is_char_boundary(n) {
        n -= 1;
    }
    unsafe {
        addr_of_mut!((*error).code).write(failure.code);
        addr_of_mut!((*error).retry_after_ms).write(0);
        addr_of_mut!((*error).n).write(n as u32);
        let text = addr_of_mut!((*error).text).cast::<u8>();
        text.copy_from_nonoverlapping(failure.text.as_ptr(), n);
    }
}

/// A borrowed text of the ABI that lives as long as the library.
const fn constant(text: &'static str) -> bh_str {
    bh_str { p: text.as_ptr().cast(), n: text.len() as u64 }
}

/// # Safety
/// The text is valid during 'a, which ends with the call that received it.
unsafe fn bytes<'a>(text: bh_str) -> &'a [u8] {
    if text.n == 0 {
        return &[]; // p may be NULL
    }
    unsafe { std::slice::from_raw_parts(text.p.cast(), text.n as usize) }
}

/// Transfers a text to the gateway, which calls `release` when it no longer needs the text.
fn owned(text: String) -> bh_buf {
    unsafe extern "C" fn release(owner: *mut c_void) {
        drop(unsafe { Box::from_raw(owner.cast::<String>()) });
    }
    let text = Box::new(text);
    let (p, n) = (text.as_ptr().cast(), text.len() as u64);
    bh_buf { p, n, owner: Box::into_raw(text).cast(), release: Some(release) }
}

struct Instance {
    plugin: bh_plugin,
    host: *const bh_host,
    complete: Cell<Option<Complete>>,
    config: RefCell<Config>,
}
type Complete = unsafe extern "C" fn(*mut c_void, bh_call, *const bh_result) -> bh_status;

/// # Safety
/// `this` is the `self` of a bh_plugin that was created here and not destroyed.
unsafe fn instance<'a>(this: *mut c_void) -> &'a Instance {
    unsafe { &*this.cast::<Instance>() }
}

impl Instance {
    fn ctx(&self) -> *mut c_void {
        unsafe { addr_of!((*self.host).ctx).read() }
    }
    fn log(&self, level: i32, text: &'static str) {
        unsafe {
            let log = addr_of!((*self.host).log).read();
            log(self.ctx(), level, constant(text));
        }
    }
    /// Returns the table of an extension, or NULL. The ID ends with NUL.
    fn host_ext<T>(&self, id: &'static [u8]) -> *const T {
        unsafe {
            let get_ext = addr_of!((*self.host).get_ext).read();
            get_ext(self.ctx(), id.as_ptr().cast()).cast()
        }
    }
}

// ---- bh.tools/1 ----

unsafe extern "C" fn list(
    _this: *mut c_void,
    info: *const bh_list_info,
    out: *mut bh_buf,
    error: *mut bh_error,
) -> bh_status {
    let body = || {
        if unsafe { addr_of!((*info).kind).read() } != BH_LIST_TOOLS {
            return failure(BH_E_UNSUPPORTED, "this plugin has only tools");
        }
        let (p, n) = (TOOLS.as_ptr().cast(), TOOLS.len() as u64);
        // Static data is not released.
        unsafe { out.write(bh_buf { p, n, owner: std::ptr::null_mut(), release: None }) };
        Ok(BH_OK)
    };
    unsafe { guard(error, body) }
}

unsafe extern "C" fn call_begin(
    this: *mut c_void,
    call: bh_call,
    info: *const bh_call_info,
    error: *mut bh_error,
) -> bh_status {
    let body = || {
        let this = unsafe { instance(this) };
        let name = unsafe { bytes(addr_of!((*info).name).read()) };
        let arguments = unsafe { bytes(addr_of!((*info).arguments).read()) };
        let complete = match this.complete.get() {
            Some(complete) => complete,
            None => return failure(BH_E_INTERNAL, "configure was not called"),
        };
        let text = text_argument(arguments);
        let outcome = match name {
            b"word_count" => text.map(|text| word_count(&text)),
            b"shout" => text.map(|text| shout(&this.config.borrow(), &text)),
            _ => return failure(BH_E_NOT_FOUND, "unknown tool"),
        };
        let json = owned(tool_result(outcome));
        let result = bh_result { size: size_of::<bh_result>() as u32, kind: BH_RESULT_OK, json };
        // The call is completed here, so nothing after this line may fail or panic.
        unsafe { complete(this.ctx(), call, &result) };
        Ok(BH_OK)
    };
    unsafe { guard(error, body) }
}

/// Every call is completed inside call_begin.
unsafe extern "C" fn call_cancel(_: *mut c_void, _: bh_call, _: *const bh_cancel) {}

static TOOLS_TABLE: bh_tools = bh_tools {
    size: size_of::<bh_tools>() as u32,
    reserved: 0,
    list,
    call_begin,
    call_cancel,
    features: None,
};

// ---- instance lifecycle ----

unsafe extern "C" fn configure(
    this: *mut c_void,
    config_json: bh_str,
    error: *mut bh_error,
) -> bh_status {
    let body = || {
        let this = unsafe { instance(this) };
        match read_config(unsafe { bytes(config_json) }) {
            Ok(config) => *this.config.borrow_mut() = config,
            Err(reason) => {
                return failure(BH_E_INVALID, format!("the configuration is invalid: {}", reason))
            }
        }
        static TOOLS_ID: [u8; BH_EXT_HOST_TOOLS.len() + 1] = terminated(BH_EXT_HOST_TOOLS);
        let tools = this.host_ext::<bh_host_tools>(&TOOLS_ID);
        if tools.is_null() || !unsafe { has!(bh_host_tools, tools, complete) } {
            return failure(BH_E_UNSUPPORTED, "this host does not support tools");
        }
        this.complete.set(Some(unsafe { addr_of!((*tools).complete).read() }));
        Ok(BH_OK)
    };
    unsafe { guard(error, body) }
}

unsafe extern "C" fn start(this: *mut c_void, error: *mut bh_error) -> bh_status {
    let body = || {
        unsafe { instance(this) }.log(BH_LOG_INFO, "ready");
        Ok(BH_OK)
    };
    unsafe { guard(error, body) }
}

unsafe extern "C" fn probe(_this: *mut c_void, _error: *mut bh_error) -> bh_status {
    BH_OK
}

unsafe extern "C" fn drain(_this: *mut c_void, _deadline_ns: u64) {}

unsafe extern "C" fn stop(_this: *mut c_void) {}

unsafe extern "C" fn destroy(this: *mut c_void) {
    drop(unsafe { Box::from_raw(this.cast::<Instance>()) });
}

unsafe extern "C" fn get_ext(_this: *mut c_void, id: *const c_char) -> *const c_void {
    if unsafe { CStr::from_ptr(id) }.to_bytes() == BH_EXT_TOOLS.as_bytes() {
        let table: *const bh_tools = &TOOLS_TABLE;
        return table.cast();
    }
    null()
}

// ---- exports ----

unsafe extern "C" fn init(_host: *const bh_host, _error: *mut bh_error) -> bh_status {
    BH_OK
}

unsafe extern "C" fn deinit() {}

unsafe extern "C" fn create(
    id: *const c_char,
    host: *const bh_host,
    out: *mut *const bh_plugin,
    error: *mut bh_error,
) -> bh_status {
    let body = || {
        if unsafe { CStr::from_ptr(id) }.to_bytes() != ID.as_bytes() {
            return failure(BH_E_NOT_FOUND, "unknown plugin");
        }
        let this = Box::into_raw(Box::new(Instance {
            plugin: bh_plugin {
                size: size_of::<bh_plugin>() as u32,
                reserved: 0,
                this: std::ptr::null_mut(),
                configure,
                start,
                probe,
                drain,
                stop,
                destroy,
                get_ext,
            },
            host,
            complete: Cell::new(None),
            config: RefCell::new(Config { suffix: String::new(), rehearse: false }),
        }));
        unsafe {
            (*this).plugin.this = this.cast();
            out.write(addr_of!((*this).plugin));
        }
        Ok(BH_OK)
    };
    unsafe { guard(error, body) }
}

/// A constant that contains pointers to static data.
#[repr(transparent)]
struct Shared<T>(T);
unsafe impl<T> Sync for Shared<T> {}

/// The schema for the gateway, which reads it from the file before it runs any code.
#[used]
#[link_section = "bh_config_schema"]
static SCHEMA_SECTION: [u8; SCHEMA.len() + 1] = terminated(SCHEMA);
const _: () = assert!(equal(layout::BH_SCHEMA_SECTION, "bh_config_schema"));

static ID_TEXT: [u8; ID.len() + 1] = terminated(ID);
static TOOLS_TEXT: [u8; BH_EXT_TOOLS.len() + 1] = terminated(BH_EXT_TOOLS);
static PROVIDES: Shared<[*const c_char; 2]> = Shared([TOOLS_TEXT.as_ptr().cast(), null()]);
static DESCRIPTOR: Shared<bh_descriptor> = Shared(bh_descriptor {
    size: size_of::<bh_descriptor>() as u32,
    flags: 0,
    id: ID_TEXT.as_ptr().cast(),
    provides: PROVIDES.0.as_ptr(),
    name: constant(ID),
    version: constant(VERSION),
    vendor: constant("Example"),
    // This reference also prevents that the linker drops the section.
    config_schema: bh_str { p: SCHEMA_SECTION.as_ptr().cast(), n: SCHEMA.len() as u64 },
});

unsafe extern "C" fn descriptor(i: u32) -> *const bh_descriptor {
    if i == 0 {
        &DESCRIPTOR.0
    } else {
        null()
    }
}

static ENTRY: bh_entry = bh_entry {
    size: size_of::<bh_entry>() as u32,
    abi_major: BH_ABI_MAJOR,
    abi_minor_built: BH_ABI_MINOR,
    abi_minor_needed: 0,
    init,
    deinit,
    count: 1,
    abi_rc: BH_ABI_RC,
    descriptor,
    create,
};

/// The only symbol that the library exports.
#[no_mangle]
pub extern "C" fn bh_plugin_entry_v1() -> *const bh_entry {
    &ENTRY
}
const _: () = assert!(equal(layout::BH_PLUGIN_ENTRY_SYMBOL, "bh_plugin_entry_v1"));
