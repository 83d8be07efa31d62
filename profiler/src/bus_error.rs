//! SIGBUS on the mapped blocks of the record: the kernel sends it if the file was truncated or its file system reports an error. The block
//! is replaced by memory, the recording ends, and the program continues. The functions that set handlers and masks of signals are
//! defined here, so that a program neither sees nor replaces this handler: its own one receives every other SIGBUS.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

use beff_trace::raw::{BLOCK_BYTES, MAX_LANES};

use crate::original::Symbol;
use crate::recording;

type SigactionFunction = unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;
type SignalFunction = unsafe extern "C" fn(c_int, usize) -> usize;
type MaskFunction = unsafe extern "C" fn(c_int, *const libc::sigset_t, *mut libc::sigset_t) -> c_int;

static SIGACTION: Symbol = Symbol::new(c"sigaction");
static SIGNAL: Symbol = Symbol::new(c"signal");
static SYSV_SIGNAL: Symbol = Symbol::new(c"__sysv_signal");
static PTHREAD_SIGMASK: Symbol = Symbol::new(c"pthread_sigmask");
static SIGPROCMASK: Symbol = Symbol::new(c"sigprocmask");

/// Addresses of the mapped blocks, which are never unmapped.
static BLOCKS: [AtomicUsize; MAX_LANES] = [const { AtomicUsize::new(0) }; MAX_LANES];
static BLOCK_COUNT: AtomicUsize = AtomicUsize::new(0);
static INSTALLED: AtomicBool = AtomicBool::new(false);
/// Handler and flags of the program. Its mask is that of the installed action.
static PROGRAM_HANDLER: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static PROGRAM_FLAGS: AtomicI32 = AtomicI32::new(0);

/// The original of a function.
///
/// # Safety
/// `F` is the type of the function.
unsafe fn original<F: Copy>(symbol: &Symbol) -> F {
    // SAFETY: guaranteed by the caller; function pointers have the size of an address.
    unsafe { core::mem::transmute_copy(&symbol.function()) }
}

fn original_sigaction(new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    // SAFETY: the callers pass pointers that are valid or null.
    unsafe { original::<SigactionFunction>(&SIGACTION)(libc::SIGBUS, new, old) }
}

/// Finds the functions, because a search is not allowed in a signal handler that calls one.
pub fn on_load() {
    for symbol in [&SIGACTION, &SIGNAL, &SYSV_SIGNAL, &PTHREAD_SIGMASK, &SIGPROCMASK] {
        symbol.address();
    }
}

/// Handles SIGBUS on a mapped block from now on.
pub fn guard_block(address: usize) {
    if let Some(place) = BLOCKS.get(BLOCK_COUNT.fetch_add(1, Ordering::Relaxed)) {
        place.store(address, Ordering::Release);
    }
    if !INSTALLED.swap(true, Ordering::AcqRel) {
        set_program_action(&installed_action());
    }
}

/// Unblocks SIGBUS in this thread: while it is blocked, a fault terminates the program.
pub fn unblock() {
    if INSTALLED.load(Ordering::Acquire) {
        let only = bus_set();
        // SAFETY: the set is a local variable.
        unsafe {
            original::<MaskFunction>(&PTHREAD_SIGMASK)(libc::SIG_UNBLOCK, &raw const only, std::ptr::null_mut());
        }
    }
}

fn bus_set() -> libc::sigset_t {
    // SAFETY: a set of signals contains numbers only, and is a local variable.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGBUS);
        set
    }
}

/// Installs the handler of this library with the mask and the flags that the program wants for its own.
fn set_program_action(new: &libc::sigaction) -> c_int {
    PROGRAM_HANDLER.store(new.sa_sigaction, Ordering::Release);
    PROGRAM_FLAGS.store(new.sa_flags, Ordering::Release);
    let mut own = *new;
    own.sa_sigaction = on_bus_error as *const () as usize;
    own.sa_flags = (new.sa_flags & !libc::SA_RESETHAND) | libc::SA_SIGINFO;
    original_sigaction(&raw const own, std::ptr::null_mut())
}

/// No flags, no mask, the default handler.
fn default_action() -> libc::sigaction {
    // SAFETY: the structure contains numbers only, for which zeros are valid.
    unsafe { std::mem::zeroed() }
}

fn installed_action() -> libc::sigaction {
    let mut action = default_action();
    original_sigaction(std::ptr::null(), &raw mut action);
    action
}

/// The action of the program for SIGBUS, as it has set it.
fn program_action() -> libc::sigaction {
    let mut action = installed_action();
    action.sa_sigaction = PROGRAM_HANDLER.load(Ordering::Acquire);
    action.sa_flags = PROGRAM_FLAGS.load(Ordering::Acquire);
    action
}

extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes the information, which of a fault contains its address.
    let (is_fault, address) = unsafe { ((*info).si_code > 0, (*info).si_addr() as usize) };
    if is_fault && replace_block(address) {
        return recording::lose();
    }
    let (handler, flags) = (PROGRAM_HANDLER.load(Ordering::Acquire), PROGRAM_FLAGS.load(Ordering::Acquire));
    if handler == libc::SIG_IGN && !is_fault {
        return;
    }
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        // A fault occurs again on return; a sent signal is pending until then.
        original_sigaction(&default_action(), std::ptr::null_mut());
        if !is_fault {
            // SAFETY: only sends a signal.
            unsafe { libc::raise(signal) };
        }
        return;
    }
    if flags & libc::SA_RESETHAND != 0 {
        PROGRAM_HANDLER.store(libc::SIG_DFL, Ordering::Release);
    }
    // SAFETY: the program has set a handler of the type that its flags tell.
    unsafe {
        if flags & libc::SA_SIGINFO == 0 {
            core::mem::transmute::<usize, extern "C" fn(c_int)>(handler)(signal);
        } else {
            let handler =
                core::mem::transmute::<usize, extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void)>(handler);
            handler(signal, info, context);
        }
    }
}

/// Replaces the block that contains the address by memory. False if no block does, or if there is no memory.
fn replace_block(address: usize) -> bool {
    let blocks = BLOCKS.iter().map(|block| block.load(Ordering::Acquire)).take_while(|block| *block != 0);
    let Some(block) = blocks.into_iter().find(|block| (*block..*block + BLOCK_BYTES).contains(&address)) else {
        return false;
    };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: the block is memory of this library; the file keeps what can still be written.
    unsafe { libc::mmap(block as *mut c_void, BLOCK_BYTES, protection, flags, -1, 0) != libc::MAP_FAILED }
}

#[no_mangle]
unsafe extern "C" fn sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    if signal != libc::SIGBUS || !INSTALLED.load(Ordering::Acquire) {
        // SAFETY: the arguments of the program.
        return unsafe { original::<SigactionFunction>(&SIGACTION)(signal, new, old) };
    }
    let before = program_action();
    // SAFETY: the program passes pointers that are valid or null; both may be the same.
    unsafe {
        let code = new.as_ref().map_or(0, set_program_action);
        if let Some(old) = old.as_mut().filter(|_| code == 0) {
            *old = before;
        }
        code
    }
}

/// signal(2) of BSD or System V, given their flags.
fn set_handler(handler: usize, flags: c_int) -> usize {
    let before = program_action().sa_sigaction;
    let mut new = default_action();
    (new.sa_sigaction, new.sa_flags) = (handler, flags);
    if set_program_action(&new) == 0 {
        before
    } else {
        libc::SIG_ERR
    }
}

#[no_mangle]
unsafe extern "C" fn signal(signal: c_int, handler: usize) -> usize {
    if signal == libc::SIGBUS && INSTALLED.load(Ordering::Acquire) && handler != libc::SIG_ERR {
        return set_handler(handler, libc::SA_RESTART);
    }
    // SAFETY: the arguments of the program.
    unsafe { original::<SignalFunction>(&SIGNAL)(signal, handler) }
}

#[no_mangle]
unsafe extern "C" fn __sysv_signal(signal: c_int, handler: usize) -> usize {
    if signal == libc::SIGBUS && INSTALLED.load(Ordering::Acquire) && handler != libc::SIG_ERR {
        return set_handler(handler, libc::SA_RESETHAND | libc::SA_NODEFER);
    }
    // SAFETY: the arguments of the program.
    unsafe { original::<SignalFunction>(&SYSV_SIGNAL)(signal, handler) }
}

/// Sets a mask without SIGBUS.
fn set_mask(set_mask: MaskFunction, how: c_int, set: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int {
    // SAFETY: the arguments of the program, or a copy of its set.
    unsafe {
        match set.as_ref().filter(|_| INSTALLED.load(Ordering::Acquire) && how != libc::SIG_UNBLOCK) {
            Some(set) => {
                let mut without = *set;
                libc::sigdelset(&raw mut without, libc::SIGBUS);
                set_mask(how, &raw const without, old)
            }
            None => set_mask(how, set, old),
        }
    }
}

#[no_mangle]
unsafe extern "C" fn pthread_sigmask(how: c_int, set: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int {
    // SAFETY: the function of this name has this type.
    set_mask(unsafe { original(&PTHREAD_SIGMASK) }, how, set, old)
}

#[no_mangle]
unsafe extern "C" fn sigprocmask(how: c_int, set: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int {
    // SAFETY: the function of this name has this type.
    set_mask(unsafe { original(&SIGPROCMASK) }, how, set, old)
}
