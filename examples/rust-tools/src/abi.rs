//! The structs of the plugin ABI that this plugin uses. Each has the name of the C header's struct,
//! and the headers document all members.
//!
//! `layout.rs` is generated from the headers by the program in layout.c. It has the size and the
//! members of each struct, and the values of the constants. The assertions below compare it with
//! the declarations here at compile time.
#![allow(non_camel_case_types, dead_code)]

use std::mem::{align_of, size_of};
use std::os::raw::{c_char, c_void};

#[allow(non_upper_case_globals)]
pub mod layout {
    include!(concat!(env!("OUT_DIR"), "/layout.rs"));
}
pub use layout::{
    BH_ABI_MAJOR, BH_ABI_MINOR, BH_ABI_RC, BH_EXT_HOST_TOOLS, BH_EXT_TOOLS, BH_E_INTERNAL, BH_E_INVALID,
    BH_E_NOT_FOUND, BH_E_UNSUPPORTED, BH_LIST_TOOLS, BH_LOG_INFO, BH_OK, BH_RESULT_OK,
};

/// core.h. No enum, because the host may return values that this plugin does not know.
pub type bh_status = i32;
/// ext/tools.h
pub type bh_call = u64;

const fn round_up(offset: usize, align: usize) -> usize {
    (offset + align - 1) / align * align
}

/// Declares a struct of the ABI and compares its layout with that of the C struct. `repr(C)` places
/// each member at the next offset that its alignment allows, so the offsets can be computed here.
/// (`offset_of!` requires Rust 1.77.)
macro_rules! abi_struct {
    ($(#[$attribute:meta])* $name:ident { $($member:ident: $type:ty,)* }) => {
        $(#[$attribute])*
        #[repr(C)]
        pub struct $name {
            $(pub $member: $type,)*
        }
        const _: () = {
            let mut end = 0;
            $(
                let offset = round_up(end, align_of::<$type>());
                assert!(
                    offset == layout::$name::$member.0
                        && size_of::<$type>() == layout::$name::$member.1,
                    concat!(stringify!($name), ".", stringify!($member),
                        " has another offset or size in the C headers")
                );
                end = offset + size_of::<$type>();
            )*
            assert!(
                round_up(end, align_of::<$name>()) == layout::$name::SIZE
                    && size_of::<$name>() == layout::$name::SIZE
                    && align_of::<$name>() == layout::$name::ALIGN,
                concat!(stringify!($name), " has another size in the C headers")
            );
        };
    };
}

/// BH_HAS of core.h: true if the struct behind the pointer contains the member. Structs of the host
/// are read through raw pointers only, because a struct of another version may be shorter.
macro_rules! has {
    ($name:ident, $pointer:expr, $member:ident) => {
        std::ptr::addr_of!((*$pointer).size).read() as usize
            >= $crate::abi::layout::$name::$member.0 + $crate::abi::layout::$name::$member.1
    };
}
pub(crate) use has;

abi_struct! {
    /// core.h
    bh_str {
        p: *const c_char,
        n: u64,
    }
}

abi_struct! {
    /// core.h
    bh_buf {
        p: *const c_char,
        n: u64,
        owner: *mut c_void,
        release: Option<unsafe extern "C" fn(*mut c_void)>,
    }
}

abi_struct! {
    /// core.h
    bh_error {
        size: u32,
        code: bh_status,
        retry_after_ms: u32,
        n: u32,
        text: [c_char; 480],
    }
}

abi_struct! {
    /// host.h
    bh_host {
        size: u32,
        abi_minor: u32,
        ctx: *mut c_void,
        name: bh_str,
        version: bh_str,
        get_ext: unsafe extern "C" fn(*mut c_void, *const c_char) -> *const c_void,
        log: unsafe extern "C" fn(*mut c_void, i32, bh_str),
        log_enabled: unsafe extern "C" fn(*mut c_void, i32) -> i32,
    }
}

abi_struct! {
    /// plugin.h. The member `this` is `self` in the header.
    bh_plugin {
        size: u32,
        reserved: u32,
        this: *mut c_void,
        configure: unsafe extern "C" fn(*mut c_void, bh_str, *mut bh_error) -> bh_status,
        start: unsafe extern "C" fn(*mut c_void, *mut bh_error) -> bh_status,
        probe: unsafe extern "C" fn(*mut c_void, *mut bh_error) -> bh_status,
        drain: unsafe extern "C" fn(*mut c_void, u64),
        stop: unsafe extern "C" fn(*mut c_void),
        destroy: unsafe extern "C" fn(*mut c_void),
        get_ext: unsafe extern "C" fn(*mut c_void, *const c_char) -> *const c_void,
    }
}

abi_struct! {
    /// plugin.h
    bh_descriptor {
        size: u32,
        flags: u32,
        id: *const c_char,
        provides: *const *const c_char,
        name: bh_str,
        version: bh_str,
        vendor: bh_str,
        config_schema: bh_str,
    }
}

abi_struct! {
    /// plugin.h
    bh_entry {
        size: u32,
        abi_major: u32,
        abi_minor_built: u32,
        abi_minor_needed: u32,
        init: unsafe extern "C" fn(*const bh_host, *mut bh_error) -> bh_status,
        deinit: unsafe extern "C" fn(),
        count: u32,
        abi_rc: u32,
        descriptor: unsafe extern "C" fn(u32) -> *const bh_descriptor,
        create: unsafe extern "C" fn(
            *const c_char,
            *const bh_host,
            *mut *const bh_plugin,
            *mut bh_error,
        ) -> bh_status,
    }
}

abi_struct! {
    /// ext/tools.h
    bh_call_info {
        size: u32,
        flags: u32,
        method: bh_str,
        name: bh_str,
        arguments: bh_str,
        deadline_ns: u64,
        session: u64,
        principal: bh_str,
        traceparent: bh_str,
        input_responses: bh_str,
        request_state: bh_str,
    }
}

abi_struct! {
    /// ext/tools.h
    bh_list_info {
        size: u32,
        kind: u32,
        session: u64,
        principal: bh_str,
    }
}

abi_struct! {
    /// ext/tools.h
    bh_cancel {
        size: u32,
        reason: u32,
        text: bh_str,
    }
}

abi_struct! {
    /// ext/tools.h
    bh_progress {
        size: u32,
        reserved: u32,
        progress: f64,
        total: f64,
        message: bh_str,
    }
}

abi_struct! {
    /// ext/tools.h
    bh_result {
        size: u32,
        kind: u32,
        json: bh_buf,
    }
}

abi_struct! {
    /// ext/tools.h
    bh_tools {
        size: u32,
        reserved: u32,
        list: unsafe extern "C" fn(
            *mut c_void,
            *const bh_list_info,
            *mut bh_buf,
            *mut bh_error,
        ) -> bh_status,
        call_begin: unsafe extern "C" fn(
            *mut c_void,
            bh_call,
            *const bh_call_info,
            *mut bh_error,
        ) -> bh_status,
        call_cancel: unsafe extern "C" fn(*mut c_void, bh_call, *const bh_cancel),
        features: Option<unsafe extern "C" fn(*mut c_void) -> u32>,
    }
}

abi_struct! {
    /// ext/tools.h
    bh_host_tools {
        size: u32,
        reserved: u32,
        complete: unsafe extern "C" fn(*mut c_void, bh_call, *const bh_result) -> bh_status,
        progress: unsafe extern "C" fn(*mut c_void, bh_call, *const bh_progress),
        list_changed: unsafe extern "C" fn(*mut c_void, *const bh_list_info),
        resource_updated: unsafe extern "C" fn(*mut c_void, bh_str),
    }
}

/// True if two texts are equal. (`==` is not available at compile time.)
pub const fn equal(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

/// A copy of the text that ends with NUL. N is the size of the text plus 1.
pub const fn terminated<const N: usize>(text: &str) -> [u8; N] {
    assert!(text.len() + 1 == N);
    let mut bytes = [0; N];
    let mut i = 0;
    while i < text.len() {
        bytes[i] = text.as_bytes()[i];
        i += 1;
    }
    bytes
}
