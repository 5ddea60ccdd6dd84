/* The walks of a classifier's tables against a search through the same intervals or rules, one key and bursts at a time. Tables are built
 * here as crates/classify/src/table.rs describes them; that crate's own are walked in tests/tests/classifier.rs. */
#include "../state/classifier.h"
#include "check.h"

#define MOST_EDGES 300u
#define NODES 6u
#define ROUNDS 400u

/* A node as a list: interval i ends at `last[i]`, the last of them at the end of all numbers. */
struct node {
    u32 edges;
    u32 last[MOST_EDGES];
    u32 to[MOST_EDGES];
};

static struct classifier_table *table;
static u32 blocks, children;
/* Far more than NODES trees of MOST_EDGES intervals take. */
enum { BLOCKS = 512, CHILDREN = 4096 };

static u32 *block_at(u32 i) { return (u32 *)table + 16 * (size_t)(CLASSIFIER_FIRST + i); }
static u32 *child_at(u32 i) { return (u32 *)table + 16 * (size_t)(CLASSIFIER_FIRST + BLOCKS) + i; }

/* Lays a node out; its root block. */
static u32 lay(const struct node *n)
{
    u32 last[MOST_EDGES], count = n->edges, below = children, inner = 0;

    memcpy(last, n->last, sizeof(last));
    for (u32 i = 0; i < count; i++)
        *child_at(children++) = n->to[i];
    for (;;) {
        u32 first = blocks, above = 0;

        for (u32 i = 0; i < count; i += 16) {
            u32 some = count - i < 16 ? count - i : 16, *b = block_at(blocks++);

            for (u32 j = 0; j < 15; j++)
                b[j] = j + 1 < some ? last[i + j] : UINT32_MAX;
            b[15] = inner | (below + i);
            last[above++] = last[i + some - 1];
        }
        CHECK(blocks <= BLOCKS && children <= CHILDREN);
        if (above == 1)
            return first;
        count = above;
        below = first;
        inner = CLASSIFIER_INNER;
    }
}

static u32 steps(u32 edges)
{
    u32 n = 1;

    for (u32 room = 16; room < edges; room *= 16)
        n++;
    return n;
}

static void draw_node(struct node *n, u32 most, u32 targets, u32 max)
{
    u32 at = 0;

    n->edges = 1 + (u32)(draw(most));
    for (u32 i = 0; i < n->edges; i++) {
        u32 left = n->edges - i, room = max - at;

        at += 1 + (u32)(draw(room / left));
        n->last[i] = i + 1 == n->edges ? UINT32_MAX : at;
        n->to[i] = (u32)(draw(targets));
    }
}

static u32 find(const struct node *n, u32 x)
{
    u32 i = 0;

    while (n->last[i] < x)
        i++;
    return n->to[i];
}

static void diagrams(void)
{
    static struct node top, low[NODES];
    struct classifier c;
    struct shape shape = { .key_bytes = 8, .rows = 9 };

    for (u32 round = 0; round < ROUNDS; round++) {
        u32 lows[NODES], highest = 1;
        u64 keys[80], tokens[80];
        const u64 *list[80];

        memset(table, 0, 64 * (size_t)(CLASSIFIER_FIRST + BLOCKS) + 4 * CHILDREN);
        blocks = children = 0;
        /* A word in host order, and one of two bytes in network order that ends the key. */
        table->head = (struct classifier_head){ .form = CLASSIFIER_DIAGRAM, .words = 2, .classes = 9, .levels = 2, .key_bytes = 8 };
        table->head.children = (u32)(child_at(0) - (u32 *)table);
        table->word[0] = (struct classifier_word){ .from = 0, .mask = UINT32_MAX };
        table->word[1] = (struct classifier_word){ .from = 4, .swap = 1, .shift = 0, .mask = 0xffff };
        for (u32 i = 0; i < NODES; i++) {
            draw_node(&low[i], round % 2 ? 5 : MOST_EDGES, 9, 0xffff);
            lows[i] = lay(&low[i]);
            highest = steps(low[i].edges) > highest ? steps(low[i].edges) : highest;
        }
        draw_node(&top, round % 3 ? 40 : MOST_EDGES, NODES, UINT32_MAX);
        for (u32 i = 0; i < top.edges; i++)
            top.to[i] = lows[top.to[i]];
        table->head.root = lay(&top);
        table->level[0] = 0 | steps(top.edges) << 8;
        table->level[1] = 1 | highest << 8;
        CHECK(classifier_create(&c, &shape, &check_config, NULL) == 0);
        keys[0] = 7;
        CHECK(classifier_token(&c, &shape, keys) == 0);
        CHECK(classifier_attach(&c, &shape, table) == 0);
        for (u32 i = 0; i < 80; i++) {
            u32 x = (u32)draw(1ull << 32), edge = (u32)draw(top.edges);
            u16 y = (u16)draw(65536);

            if (i % 2)
                x = top.last[edge] + (u32)(draw(3)) - 1;
            if (i % 3) {
                const struct node *n = &low[draw(NODES)];

                y = (u16)(n->last[draw(n->edges)] + draw(3) - 1);
            }
            /* Bytes 4 and 5 are in no field. */
            keys[i] = x | (u64)draw(65536) << 32 | (u64)__builtin_bswap16(y) << 48;
            list[i] = &keys[i];
        }
        classifier_tokens(&c, &shape, list, tokens, 80);
        for (u32 i = 0; i < 80; i++) {
            u32 at = find(&top, (u32)keys[i]), class = 99;

            for (u32 j = 0; j < NODES; j++)
                if (lows[j] == at)
                    class = find(&low[j], __builtin_bswap16((u16)(keys[i] >> 48)));
            CHECK(tokens[i] == class);
            CHECK(classifier_token(&c, &shape, &keys[i]) == class);
        }
        classifier_destroy(&c, &shape);
    }
}

/* ---- trees ---- */

#define RULES 70u

struct box {
    u32 first[2], last[2], class;
};

static struct box rules[RULES];
static u32 count, nodes, groups;
/* Fourteen nodes a tree and a level below, and of each leaf the groups that all rules take. */
enum { TREE_NODES = 3 * 300, TREE_GROUPS = 3 * 300 * (RULES / 8 + 1) };

static u32 *node_at(u32 i) { return (u32 *)table + 16 * (size_t)(CLASSIFIER_FIRST + i); }
static u32 *group_at(u32 i) { return (u32 *)table + 16 * (size_t)(CLASSIFIER_FIRST + TREE_NODES + 3 * i); }

/* A number that is likely to be where something begins or ends. */
static u32 draw_number(u32 word)
{
    const struct box *rule = &rules[draw(count ? count : 1)];
    u32 x = draw(2) ? rule->first[word] : rule->last[word];

    if (!count || draw(4) == 0)
        x = (u32)draw(1ull << 32);
    return (x + (u32)draw(3) - 1) & (word ? 0xffff : UINT32_MAX);
}

/* The rules of a tree that meet a box, in groups. */
static void leaf(u32 at, u32 tree, u32 trees, const u32 *from, const u32 *to)
{
    u32 *node = node_at(at), some = 0;

    node[15] = groups;
    for (u32 i = tree; i < count; i += trees) {
        const struct box *r = &rules[i];

        if (r->first[0] > to[0] || r->last[0] < from[0] || r->first[1] > to[1] || r->last[1] < from[1])
            continue;
        if (some % 8 == 0) {
            memset(group_at(groups), 0, 2 * 64);
            memset(group_at(groups) + 32, 0xff, 64);
            groups++;
        }
        for (u32 w = 0; w < 2; w++) {
            group_at(groups - 1)[16 * w + some % 8] = r->first[w];
            group_at(groups - 1)[16 * w + 8 + some % 8] = r->last[w] - r->first[w];
        }
        group_at(groups - 1)[32 + some % 8] = i;
        group_at(groups - 1)[32 + 8 + some % 8] = r->class;
        some++;
    }
    node[14] = CLASSIFIER_LEAF | (some + 7) / 8;
}

static void cut(u32 at, u32 tree, u32 trees, u32 *from, u32 *to, u32 depth)
{
    u32 word = (u32)draw(2), ways = 1 + (u32)draw(15), first = nodes, *node = node_at(at), begin = from[word], end = to[word];

    if (depth == 0 || draw(4) == 0) {
        leaf(at, tree, trees, from, to);
        return;
    }
    memset(node, 0xff, 64);
    nodes += ways;
    node[14] = word;
    node[15] = first;
    for (u32 i = 0; i + 1 < ways; i++)
        node[i] = draw_number(word);
    for (u32 i = 0; i + 1 < ways; i++)
        for (u32 j = i + 1; j + 1 < ways; j++)
            if (node[j] < node[i]) {
                u32 other = node[i];

                node[i] = node[j];
                node[j] = other;
            }
    for (u32 i = 0; i < ways; i++) {
        /* Ends outside of the box, and twice the same, make parts that no key is in. */
        to[word] = i + 1 < ways ? node[i] : UINT32_MAX;
        cut(first + i, tree, trees, from, to, depth - 1);
        from[word] = to[word] + 1;
    }
    from[word] = begin;
    to[word] = end;
}

static void trees(void)
{
    for (u32 round = 0; round < ROUNDS; round++) {
        struct classifier c;
        struct shape shape = { .key_bytes = 8, .rows = 9 };
        u32 roots = 1 + (u32)draw(3), most = (u32)draw(RULES);
        u64 keys[80], tokens[80];
        const u64 *list[80];

        for (count = 0; count < most; count++) {
            struct box r = { .class = (u32)draw(9) };

            for (u32 w = 0; w < 2; w++) {
                u32 a = draw_number(w), b = draw_number(w);

                r.first[w] = a < b ? a : b;
                r.last[w] = a < b ? b : a;
            }
            rules[count] = r;
        }
        table->head = (struct classifier_head){ .form = CLASSIFIER_TREES, .words = 2, .classes = 9, .roots = roots, .key_bytes = 8 };
        table->head.nodes = CLASSIFIER_FIRST;
        table->head.groups = CLASSIFIER_FIRST + TREE_NODES;
        table->word[0] = (struct classifier_word){ .from = 0, .mask = UINT32_MAX };
        table->word[1] = (struct classifier_word){ .from = 4, .swap = 1, .shift = 0, .mask = 0xffff };
        nodes = groups = 0;
        for (u32 i = 0; i < roots; i++) {
            u32 from[2] = { 0, 0 }, to[2] = { UINT32_MAX, UINT32_MAX };

            table->root[i] = nodes++;
            cut(table->root[i], i, roots, from, to, 2);
        }
        CHECK(nodes <= TREE_NODES && groups <= TREE_GROUPS);
        CHECK(classifier_create(&c, &shape, &check_config, NULL) == 0);
        CHECK(classifier_attach(&c, &shape, table) == 0);
        for (u32 i = 0; i < 80; i++) {
            keys[i] = draw_number(0) | (u64)draw(65536) << 32 | (u64)__builtin_bswap16((u16)draw_number(1)) << 48;
            list[i] = &keys[i];
        }
        classifier_tokens(&c, &shape, list, tokens, 80);
        for (u32 i = 0; i < 80; i++) {
            u32 x = (u32)keys[i], y = __builtin_bswap16((u16)(keys[i] >> 48)), at = 0;

            while (at < count && (rules[at].first[0] > x || rules[at].last[0] < x || rules[at].first[1] > y || rules[at].last[1] < y))
                at++;
            CHECK(tokens[i] == (at < count ? rules[at].class : 0));
            CHECK(classifier_token(&c, &shape, &keys[i]) == tokens[i]);
        }
        classifier_destroy(&c, &shape);
    }
}

int main(void)
{
    struct shape other = { .key_bytes = 16, .rows = 9 }, fewer = { .key_bytes = 8, .rows = 8 };
    struct classifier c = { 0 };
    size_t bytes = 64 * (size_t)(CLASSIFIER_FIRST + TREE_NODES + 3 * TREE_GROUPS);

    CHECK(bytes >= 64 * (size_t)(CLASSIFIER_FIRST + BLOCKS) + 4 * CHILDREN);
    table = aligned_alloc(64, bytes);
    CHECK(table != NULL);
    diagrams();
    trees();
    CHECK(classifier_attach(&c, &other, table) == -EINVAL);
    CHECK(classifier_attach(&c, &fewer, table) == -EINVAL);
    CHECK(classifier_attach(&c, &fewer, NULL) == 0);
    free(table);
    return check_report();
}
