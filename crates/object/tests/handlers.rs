//! Objects of the handler dialect.

use crate::common;

use common::{each_clang, program};
use millrace_object::insn::{Imm64, Insn};
use millrace_object::load;
use millrace_object::program::{Dialect, Role};
use millrace_object::state::{map, vector};

#[test]
fn reads_state_ports_reasons_timers_and_parameters() {
    each_clang(&program("gate.c"), |clang, bytes| {
        let program = load(bytes, "gate").unwrap_or_else(|e| panic!("{clang}: {e}"));
        assert_eq!(program.dialect, Dialect::Handlers, "{clang}");
        assert_eq!(program.ports, ["LAN", "WAN"]);
        assert_eq!(
            program.reasons,
            ["dropped", "no_flow", "bad_header"],
            "{clang}"
        );
        let entries: Vec<_> = program
            .entries
            .iter()
            .map(|e| (e.role, program.functions[e.function.0].name.as_str()))
            .collect();
        assert_eq!(
            entries,
            [
                (Role::OnPacket, "millrace_on_packet"),
                (Role::OnStart, "millrace_on_start"),
                (
                    Role::Every {
                        period: 1_000_000_000
                    },
                    "reset"
                ),
            ],
            "{clang}"
        );
        let object = |name: &str| program.objects.iter().find(|o| o.name == name).unwrap();
        let flows = object("flows");
        assert_eq!(flows.kind, &map::KIND);
        assert_eq!((flows.key_bytes, flows.value_bytes), (8, 8));
        assert_eq!((flows.capacity, flows.expire_after), (1024, 60_000_000_000));
        assert_eq!(
            (object("per_port").kind, object("per_port").capacity),
            (&vector::KIND, 16)
        );
        let params = object(".rodata.params");
        assert!(params.read_only && params.settable);
        let limit = program.params.iter().find(|p| p.name == "limit").unwrap();
        assert_eq!(
            (limit.bytes, limit.signed, limit.type_name.as_str()),
            (4, false, "__u32")
        );
        let offset = program.params.iter().find(|p| p.name == "offset").unwrap();
        assert_eq!((offset.bytes, offset.signed), (8, true));
    });
}

#[test]
fn references_become_objects_and_verdicts() {
    each_clang(&program("gate.c"), |clang, bytes| {
        let program = load(bytes, "gate").unwrap();
        let on_packet = &program.functions[program.entries[0].function.0];
        let mut objects = Vec::new();
        let mut numbers = std::collections::BTreeSet::new();
        for insn in &on_packet.insns {
            match insn {
                Insn::LoadImm {
                    value: Imm64::Object(id),
                    ..
                } => {
                    objects.push(program.objects[id.0].name.as_str());
                }
                Insn::LoadImm {
                    value: Imm64::Number(n),
                    ..
                } => {
                    numbers.insert(*n);
                }
                _ => {}
            }
        }
        assert_eq!(objects, ["flows", "per_port"], "{clang}");
        assert_eq!(
            numbers.into_iter().collect::<Vec<_>>(),
            [1, 2],
            "{clang}: indices of reasons"
        );
        assert!(
            program.functions.iter().any(|f| f.name == "next_port"),
            "{clang}"
        );
    });
}
