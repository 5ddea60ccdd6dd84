/* transact: the protocol of sync/transact.h for three workers, for spin (Holzmann, The Model Checker SPIN, IEEE TSE 23,
 * 1997): every interleaving, without a bound on preemptions. transact.c runs the headers themselves, within one.
 *
 * Worker 0 sets x if it finds y unset, worker 1 sets y if it finds x unset, worker 2 reads both; all count to z; workers
 * 0 and 2 refresh an entry. Worker 1 decides over the entry's expiry before that. In every serial order at most one of x and y is
 * set, z counts all, and an entry that a packet refreshed while it was there is there in the end.
 *
 * Weakened by -DREADS (reads are not validated), -DUPDATE (a word is taken whatever its version is), -DGRACE (no wait before stamps
 * are joined), -DLINES (alone without lines), -DMARK (a mark keeps nobody from committing): each has to fail. */
#define WORKERS 3
#ifndef ATTEMPTS
#define ATTEMPTS 1 /* before a packet runs alone */
#endif

#define X 0
#define Y 1
#define Z 2
#define ENTRY 3
#define NONE 4

byte version[4];
bool taken[4];
byte value[4];
bool dying, dead;
bool stamp[WORKERS];
byte next[WORKERS], serving[WORKERS]; /* tickets of lines */
bool writer;                          /* one at a time waits for all lines */
byte counts;                          /* packets that counted to z */
bool refreshed;
byte ended;

inline line_take(c) {
    atomic { ticket = next[c]; next[c]++ }
    serving[c] == ticket
}

inline line_pass(c) { serving[c]++ }

/* The packet's words of `w`: 0 if another worker has it. */
inline look(w, seen) {
    atomic {
        if
        :: taken[w] -> again = true
        :: else -> seen = version[w]
        fi
    }
}

inline cas(w, seen) {
    atomic {
        if
#ifdef UPDATE
        :: !taken[w] -> taken[w] = true
#else
        :: !taken[w] && version[w] == seen -> taken[w] = true
#endif
        :: else -> again = true
        fi
    }
}

/* Taken by this packet itself it is what it was when it was taken. */
inline still(w, seen, mine) {
    atomic {
        if
#ifdef READS
        :: true
#else
        :: version[w] == seen && (!taken[w] || mine)
        :: else -> again = true
#endif
        fi
    }
}

inline release(w) { atomic { version[w]++; taken[w] = false } }

proctype worker(byte me) {
    byte ticket, attempts, a, b, e, z, seen_a, seen_b, seen_e, seen_z, write, i, marked;
    byte tickets[WORKERS];
    bool again, alone, sees;

    line_take(me);
    /* Worker 1: has the entry expired? */
    if
    :: me == 1 ->
        atomic {
            if
            :: !taken[ENTRY] && !dying && !dead -> marked = version[ENTRY]; dying = true; sees = true
            :: else -> skip
            fi
        }
        if
        :: sees ->
#ifndef GRACE
            line_pass(me);
            i = 0;
            do
            :: i < WORKERS ->
                if
                :: i != me -> line_take(i); line_pass(i)
                :: else -> skip
                fi;
                i++
            :: else -> break
            od;
            line_take(me);
#endif
            sees = stamp[0];
            sees = sees || stamp[2];
            atomic {
                if
                :: version[ENTRY] == marked ->
                    version[ENTRY]++;
                    dying = false;
                    dead = !sees
                :: else -> skip
                fi
            };
            sees = false
        :: else -> skip
        fi
    :: else -> skip
    fi;

    do
    :: attempts == ATTEMPTS ->
        /* Alone: its own line is given up before all are taken. */
        alone = true;
#ifndef LINES
        line_pass(me);
        atomic { !writer -> writer = true };
        i = 0;
        do
        :: i < WORKERS -> atomic { tickets[i] = next[i]; next[i]++; i++ }
        :: else -> break
        od;
        i = 0;
        do
        :: i < WORKERS -> serving[i] == tickets[i]; i++
        :: else -> break
        od;
#endif
        if
        :: me == 0 -> a = value[Y]; if :: a == 0 -> value[X] = 1; version[X]++ :: else fi
        :: me == 1 -> a = value[X]; if :: a == 0 -> value[Y] = 1; version[Y]++ :: else fi
        :: me == 2 -> a = value[X]; b = value[Y]; assert(!(a && b))
        fi;
        z = value[Z];
        value[Z] = z + 1;
        version[Z]++;
        counts++;
        if
        :: me != 1 && !dead -> stamp[me] = true; refreshed = true
        :: else -> skip
        fi;
        break
    :: else ->
        again = false;
        write = NONE;
        sees = false;
        /* The attempt. */
        if
        :: me == 0 -> look(Y, seen_b); b = value[Y]
        :: me == 1 -> look(X, seen_b); b = value[X]
        :: me == 2 -> look(X, seen_a); a = value[X]; look(Y, seen_b); b = value[Y]
        fi;
        if
        :: !again && me == 0 && b == 0 -> look(X, seen_a); write = X
        :: !again && me == 1 && b == 0 -> look(Y, seen_a); write = Y
        :: else -> skip
        fi;
        if
        :: !again -> look(Z, seen_z); z = value[Z]
        :: else -> skip
        fi;
        if
        :: !again && me != 1 ->
            atomic {
                if
#ifndef MARK
                :: dying -> again = true
#endif
                :: dead -> skip
                :: else -> seen_e = version[ENTRY]; sees = true
                fi
            }
        :: else -> skip
        fi;
        /* Commit: words in the order of addresses, then reads, then what it did. */
        if
        :: !again && write != NONE ->
            cas(write, seen_a);
            if :: again -> write = NONE :: else -> skip fi
        :: else -> skip
        fi;
        if
        :: !again ->
            cas(Z, seen_z);
            if
            :: again && write != NONE -> taken[write] = false
            :: else -> skip
            fi
        :: else -> skip
        fi;
        if
        :: !again ->
            if
            :: me == 0 -> still(Y, seen_b, false)
            :: me == 1 -> still(X, seen_b, false)
            :: me == 2 -> still(X, seen_a, false); still(Y, seen_b, false)
            fi;
            if
            :: sees ->
                atomic {
                    if
#ifdef MARK
                    :: version[ENTRY] == seen_e
#else
                    :: version[ENTRY] == seen_e && !dying
#endif
                    :: else -> again = true
                    fi
                }
            :: else -> skip
            fi;
            if
            :: again ->
                if :: write != NONE -> taken[write] = false :: else -> skip fi;
                taken[Z] = false
            :: else ->
                if :: me == 2 -> assert(!(a && b)) :: else -> skip fi;
                if :: sees -> refreshed = true; stamp[me] = true :: else -> skip fi;
                if :: write != NONE -> value[write] = 1; release(write) :: else -> skip fi;
                value[Z] = z + 1;
                counts++;
                release(Z);
                break
            fi
        :: else -> skip
        fi;
        attempts++;
        /* Who waits for all lines goes first. */
        line_pass(me);
        line_take(me)
    od;
    if
    :: alone ->
#ifndef LINES
        i = 0;
        do
        :: i < WORKERS -> line_pass(i); i++
        :: else -> break
        od;
        writer = false
#else
        line_pass(me)
#endif
    :: else -> line_pass(me)
    fi;
    atomic {
        ended++;
        if
        :: ended == WORKERS ->
            assert(!(value[X] && value[Y]));
            assert(value[Z] == counts);
            assert(!(refreshed && dead))
        :: else -> skip
        fi
    }
}

init { atomic { run worker(0); run worker(1); run worker(2) } }
