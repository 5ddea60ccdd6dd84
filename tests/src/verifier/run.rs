//! The value of `r0` at the end of programs of a suite: as emitted, and in the reference interpreter.

use std::path::Path;
use std::sync::Arc;

use millrace_check::{Checked, Options};
use millrace_dataplane::module::{Config, Instance, Module};
use millrace_dataplane::packet::{Arrival, Burst, Layout};
use millrace_emit::alone;
use millrace_emit::cache::Cache;
use millrace_emit::toolchain::{ModuleOptions, compile_module, find};
use millrace_object::Program;
use millrace_object::insn::{AluOp, Imm64, Insn, Operand, Reg, Size, Width};
use millrace_object::program::{Entry, Function, ObjectId, Role, StateObject};
use millrace_object::state::global;
use millrace_reference::{End, Machine};

use super::{Case, suite};

/// Bytes of the packet, all zero, as in the kernel's own runs.
pub const FRAME: usize = 64;

/// Instructions that the interpreter executes of a program before it gives up.
const MOST_STEPS: u64 = 300_000_000;

/// When programs run, in ns.
const NOW: u64 = 1_000_000_000;

/// Arrays whose first value the kernel's half of a test has filled (prog_tests/verifier.c, `init_test_val_map`), by file.
const FILLED: [(&str, &str); 2] = [
    ("verifier_array_access", "map_array_ro"),
    ("verifier_value_ptr_arith", "map_array_48b"),
];

/// These arrays of a program, and their `struct test_val`: an index of the eighth word and of those a number in the eighth.
fn filled(program: &Program) -> impl Iterator<Item = (ObjectId, Vec<u8>)> {
    let is = |o: &StateObject| FILLED.contains(&(program.name.as_str(), o.name.as_str()));
    let objects = program.objects.iter().enumerate();
    objects.filter(move |(_, o)| is(o)).map(|(at, o)| {
        let mut value = vec![0; o.value_bytes as usize];
        for (word, number) in [(0, 28_u32), (7, 0xabcd_ef12)] {
            if let Some(bytes) = value.get_mut(4 * word..4 * word + 4) {
                bytes.copy_from_slice(&number.to_le_bytes());
            }
        }
        (ObjectId(at), value)
    })
}

/// Instructions that it executes of one whose result nobody asks for.
const FEW_STEPS: u64 = 1_000_000;

/// The lower 32 bits of `r0`, or why there are none.
pub type Outcome = Result<u32, String>;

/// What programs of one object give: emitted and interpreted. Programs whose result cannot be kept, as it may
/// be an address, or which cannot be called, are left out.
///
/// # Errors
/// The object cannot be read, or its code cannot be compiled.
pub fn results(
    cache: &Path,
    file: &[u8],
    cases: &[&Case],
) -> Result<Vec<(Case, Outcome, Outcome)>, String> {
    let runs = |case: &&&Case| around(file, &[**case]).is_ok_and(|p| check(&p).is_ok());
    let cases: Vec<&Case> = cases.iter().filter(runs).copied().collect();
    if cases.is_empty() {
        return Ok(Vec::new());
    }
    let program = around(file, &cases)?;
    let checked = check(&program)?;
    let module = compile(cache, &program, &checked)?;
    let first = program.entries.len() - cases.len();
    let one = |(i, case): (usize, &&Case)| {
        let emitted = emitted(&module, &program, first + i);
        let interpreted = interpreted(&program, &checked, first + i);
        ((*case).clone(), emitted, interpreted)
    };
    Ok(cases.iter().enumerate().map(one).collect())
}

/// How much was looked at of what the proof claims.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Claimed {
    /// programs that ran
    pub programs: usize,
    /// claims that the interpreter looked at
    pub claims: u64,
}

/// Runs programs of one object on packets of several lengths, all zero, all ones and between, and looks at what the proof
/// claims of registers and stack before each step. Emitted code, which looks at its own claims, ends the process where one
/// does not hold.
///
/// # Errors
/// The object cannot be read, its code cannot be compiled, or a claim does not hold in the interpreter.
pub fn claimed(cache: &Path, file: &[u8], cases: &[&Case]) -> Result<Claimed, String> {
    let name = cases.first().map_or("", |c| c.file.as_str());
    let mut program = suite::load(name, file, cases).map_err(|e| e.to_string())?;
    // Without the programs that they may tail-call, which are cases of their own.
    program.entries.truncate(cases.len());
    let checked = match check(&program) {
        Ok(checked) => checked,
        // A function that several call, each as its own section has it.
        Err(_) if cases.len() > 1 => {
            let mut all = Claimed::default();
            for case in cases {
                let one = claimed(cache, file, &[*case])?;
                all.programs += one.programs;
                all.claims += one.claims;
            }
            return Ok(all);
        }
        Err(why) => return Err(why),
    };
    let module = compile(cache, &program, &checked)?;
    let frames = [14, 20, 64, 128, 1500].into_iter();
    let frames: Vec<Vec<u8>> = frames
        .flat_map(|n| {
            [
                vec![0; n],
                vec![0xff; n],
                (0..n).map(|i| (i * 7) as u8).collect(),
            ]
        })
        .collect();
    let mut found = Claimed::default();
    for (at, case) in cases.iter().enumerate() {
        let entry = program.entries.get(at).ok_or("a program is missing")?;
        let mut machine = Machine::exact(&program);
        machine.begin_as_proved(&checked);
        machine.ports(1);
        let mut instance = instance(&module, &program)?;
        for frame in &frames {
            machine.packet(frame, 0, 0);
            let end = machine.run(entry.function, entry.role, FEW_STEPS);
            end.map_err(|violation| format!("{}: {}", case.name(), violation.0))?;
            let mut burst = Burst::new(1, 1, Layout::Pooled);
            if !burst.push(frame, arrival()) {
                return Err("the packet is too long".into());
            }
            instance.burst(at, false, &mut burst);
        }
        found.programs += 1;
        found.claims += machine.claims_looked_at();
    }
    Ok(found)
}

fn check(program: &Program) -> Result<Checked, String> {
    let checked = millrace_check::check(
        program,
        &Options {
            claims: true,
            ..Options::default()
        },
    );
    checked.map_err(|refusals| refusals.first().map_or(String::new(), |r| r.reason.clone()))
}

/// The programs, and behind them for each one that calls it and keeps its result in the last object.
fn around(file: &[u8], cases: &[&Case]) -> Result<Program, String> {
    let name = cases.first().map_or("", |c| c.file.as_str());
    let mut program = suite::load(name, file, cases).map_err(|e| e.to_string())?;
    let result = ObjectId(program.objects.len());
    program.objects.push(StateObject {
        initial: Some(vec![0; 8]),
        ..StateObject::new("verifier.result", &global::KIND, 0, 8, 1)
    });
    for i in 0..cases.len() {
        let callee = program
            .entries
            .get(i)
            .ok_or("a program is missing")?
            .function;
        let insns = vec![
            Insn::CallLocal { function: callee },
            Insn::LoadImm {
                dst: Reg(1),
                value: Imm64::ObjectValue {
                    object: result,
                    offset: 0,
                },
            },
            Insn::Store {
                size: Size::B8,
                base: Reg(1),
                offset: 0,
                src: Operand::Reg(Reg(0)),
            },
            Insn::Alu {
                op: AluOp::Mov,
                width: Width::W64,
                dst: Reg(0),
                src: Operand::Imm(2),
            },
            Insn::Exit,
        ];
        let function = millrace_object::program::FunctionId(program.functions.len());
        program.functions.push(Function {
            name: format!("around_{i}"),
            section: "xdp".into(),
            slots: (0..insns.len() as u32).collect(),
            lines: vec![None; insns.len()],
            insns,
        });
        program.entries.push(Entry {
            role: Role::Xdp,
            function,
        });
    }
    Ok(program)
}

fn compile(cache: &Path, program: &Program, checked: &Checked) -> Result<Arc<Module>, String> {
    let cache = Cache::at(cache).map_err(|e| e.to_string())?;
    let toolchain = find(&cache).map_err(|e| e.to_string())?;
    let text = alone::emit(program, checked, "suite.c").map_err(|e| e.to_string())?;
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let (source, module) = (
        folder.path().join("suite.c"),
        folder.path().join("suite.so"),
    );
    std::fs::write(&source, text).map_err(|e| e.to_string())?;
    let fastpath = cache.headers().map_err(|e| e.to_string())?.join("fastpath");
    compile_module(
        &toolchain,
        &source,
        &fastpath,
        &module,
        ModuleOptions::default(),
    )
    .map_err(|e| e.to_string())?;
    let module = Module::load(&module).map_err(|e| e.to_string())?;
    Ok(Arc::new(module))
}

fn instance(module: &Arc<Module>, program: &Program) -> Result<Instance, String> {
    let initial = program.objects.iter().map(|o| o.initial.clone());
    let config = Config {
        initial: initial.collect(),
        ..Config::default()
    };
    let instance = Instance::create(Arc::clone(module), &config);
    let mut instance = instance.map_err(|e| e.to_string())?;
    instance.start(NOW);
    for (object, value) in filled(program) {
        let set = instance.set(object.0, &[0; 4], &value, NOW);
        set.map_err(|e| e.to_string())?;
    }
    Ok(instance)
}

/// How a packet arrives.
fn arrival() -> Arrival {
    Arrival {
        time: NOW,
        stamp: NOW,
        ..Arrival::default()
    }
}

fn emitted(module: &Arc<Module>, program: &Program, entry: usize) -> Outcome {
    let mut instance = instance(module, program)?;
    let mut burst = Burst::new(1, 1, Layout::Pooled);
    if !burst.push(&[0; FRAME], arrival()) {
        return Err("the packet is too long".into());
    }
    instance.burst(entry, false, &mut burst);
    let value = instance.get(program.objects.len() - 1, &[], NOW);
    let value = value.map_err(|e| e.to_string())?;
    low(value.as_deref()).ok_or_else(|| "no result".into())
}

fn interpreted(program: &Program, checked: &Checked, entry: usize) -> Outcome {
    let entry = program.entries.get(entry).ok_or("a program is missing")?;
    let mut machine = Machine::exact(program);
    machine.begin_as_proved(checked);
    machine.ports(1);
    for (object, value) in filled(program) {
        machine.set(object, &[0; 4], &value);
    }
    machine
        .advance(NOW, MOST_STEPS)
        .map_err(|violation| violation.0)?;
    machine.packet(&[0; FRAME], 0, 0);
    match machine.run(entry.function, entry.role, MOST_STEPS) {
        Ok(End::Verdict(_)) => {}
        Ok(End::OutOfSteps) => return Err(format!("no end after {MOST_STEPS} steps")),
        Err(violation) => return Err(violation.0),
    }
    let value = machine.value(ObjectId(program.objects.len() - 1));
    low(value).ok_or_else(|| "no result".into())
}

fn low(value: Option<&[u8]>) -> Option<u32> {
    value?.first_chunk().map(|b| u32::from_le_bytes(*b))
}
