//! Treatment `serial`: everything that is written is one for all workers, and a mutex is held for each burst. Of no use
//! but to show what a treatment is.

use std::collections::BTreeSet;

use millrace_emit::Error;
use millrace_emit::codegen::{Burst, Unit};
use millrace_emit::sync::{Bodies, Common, Input, Plain, Treatment};
use millrace_object::program::ObjectId;

/// By object: the written ones.
struct Serial(BTreeSet<ObjectId>);

/// For any placement.
pub fn make(input: &Input) -> Result<Option<Box<dyn Treatment>>, Error> {
    let objects = (0..).map(ObjectId).zip(&input.program.objects);
    let written = objects.filter(|(_, object)| !object.read_only);
    Ok(Some(Box::new(Serial(written.map(|(id, _)| id).collect()))))
}

impl Treatment for Serial {
    fn title(&self) -> &'static str {
        "treatment serial (one worker at a time)"
    }

    fn shares(&self, object: ObjectId) -> bool {
        self.0.contains(&object)
    }

    fn common(&self) -> Option<Common> {
        Some(Common {
            member: "\tpthread_mutex_t mutex;\n\tu64 commit, time; /* of the last packet */\n",
            create: "pthread_mutex_init(&self->mutex, NULL)",
            destroy: "pthread_mutex_destroy(&self->mutex)",
        })
    }

    fn bodies(&self, _entry: usize) -> Bodies<'_> {
        Bodies {
            sites: None,
            first: &Plain,
            fallback: None,
            hot: false,
        }
    }

    fn once(&self, _entry: usize) -> bool {
        true
    }

    fn includes(&self, _unit: &Unit) -> String {
        "#include <pthread.h>\n".into()
    }

    fn members(&self) -> Vec<&'static str> {
        vec!["struct mr_shared *shared;", "u32 core;"]
    }

    fn create(&self) -> &'static str {
        "\tself->shared = config->shared;\n\tself->core = config->worker;\n"
    }

    fn functions(&self, _unit: &Unit) -> String {
        "
/* Packets have an order, in which time does not go back. */
static void serial(struct mr_instance *self, struct mr_packet *pkt)
{
	struct mr_shared *shared = self->shared;

	if (pkt->time < shared->time)
		pkt->time = shared->time;
	shared->time = pkt->time;
	pkt->core = self->core;
	pkt->commit = ++shared->commit;
}
"
        .into()
    }

    fn burst(&self, burst: &Burst) -> String {
        let [lock, unlock] = self.control();
        let begin = burst.begin.join("\n\t\t");
        format!(
            "
static void burst{index}_plain(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{{
{lock}	for (u32 i = 0; i < n; i++) {{
		serial(self, packets[i]);
		{begin}
		{run}(self, packets[i]);
	}}
{unlock}}}
",
            index = burst.index,
            run = burst.entry.function
        )
    }

    fn control(&self) -> [&'static str; 2] {
        [
            "\tpthread_mutex_lock(&self->shared->mutex);\n",
            "\tpthread_mutex_unlock(&self->shared->mutex);\n",
        ]
    }

    fn handler(&self) -> [&'static str; 2] {
        [
            "\tpthread_mutex_lock(&self->shared->mutex);\n\tserial(self, pkt);\n",
            self.control()[1],
        ]
    }
}
