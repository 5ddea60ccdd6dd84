//! What is written? An ELF file goes in, a [`Program`] comes out.
//!
//! This room reads compiled BPF (RFC 9669) in either dialect: XDP as the kernel takes it, and
//! Millrace's handlers. It decodes, resolves every relocation, and names every state object. It
//! decides nothing about safety (`check`) and nothing about execution (`emit`).
//!
//! Also here is the vocabulary that every later room shares: one file a helper in [`helper`], one
//! file a state kind in [`state`].

pub mod helper;
pub mod insn;
pub mod program;
pub mod state;

pub use insn::Insn;
pub use program::Program;
