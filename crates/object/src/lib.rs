//! Reader of objects: an ELF file goes in, a [`Program`] comes out.
//!
//! This room reads compiled BPF (RFC 9669) in either dialect: XDP as the kernel takes it, and
//! Millrace's handlers. It decodes, resolves every relocation, and names every state object. It
//! decides nothing about safety (`check`) and nothing about execution (`emit`).
//!
//! Also here is the vocabulary that every later room shares: one file a family of helpers in [`helper`], one
//! file a state kind in [`state`], and in [`contract`] what the ones do to the others.

pub mod arithmetic;
mod btf;
mod bytes;
mod capacity;
mod configuration;
pub mod contract;
mod core;
mod decode;
mod elf;
mod error;
pub mod file;
mod functions;
mod globals;
mod handlers;
pub mod helper;
pub mod insn;
mod layout;
mod link;
mod load;
mod maps;
pub mod markup;
mod narrow;
mod nulls;
pub mod options;
mod params;
pub mod program;
pub mod raw;
mod reloc;
pub mod state;
pub mod tags;
mod text;
pub mod types;
mod xdp;

pub use capacity::CapacityError;
pub use error::{Fault, LoadError};
pub use insn::Insn;
pub use load::{MOST_BYTES, load, load_file, load_file_with, load_functions, load_with, read_file};
pub use params::ParamError;
pub use program::Program;
