/*
 * fuzz/letter_fuzz.c - letters and answers, as they lie in live/mailbox.
 *
 * Input: how to take it (1: put sum, size, owner and number right), then the
 * bytes.
 */
#include "fuzz/fuzz.h"

#include "engine/local/mailbox.h"

enum { HEAD = 24 }; /* sum, size, number, owner */

static const pyri_postmark mark = {1, 2};
static uint8_t bytes[PYRI_LETTER_SIZE];
static volatile uint64_t sink;

static void
look_at(pyri_bytes b)
{
    if (b.size)
        sink += pyri_hash64(b.data, b.size);
}

/* All that it points to is there. */
static void
look_through(const pyri_letter *l)
{
    size_t n = 0;
    for (const pyri_request *r = l->requests; r; r = r->next, n++) {
        MUST(r == &l->requests[n]);
        MUST(r->ndim >= 1 && r->ndim <= PYR_MAX_DIMS);
        for (int d = 0; d < r->ndim; d++)
            sink += r->c->shape[d];
        look_at(r->c->record);
        for (size_t i = 0; i < r->c->nnodes; i++) {
            look_at(r->c->nodes[i].key);
            look_at(r->c->nodes[i].value);
        }
        for (size_t i = 0; i < r->c->nblobs; i++)
            if (r->c->blobs[i].ref.a & PYRI_SMALL_BIT)
                look_at(r->small[i]);
    }
    MUST(n == l->n && n <= PYRI_LETTER_REQUESTS);
}

/* What is answered is what is read. */
static void
answer(pyri_letter *l)
{
    static uint8_t to[PYRI_ANSWER_SIZE];
    l->requests[0].err = PYR_EFENCED;
    memset(l->requests[0].text, 'x', sizeof l->requests[0].text - 1);
    pyri_answer_write(l, to);
    l->requests[0].err = 0;
    MUST(pyri_answer_read(to, mark, l->requests) == 0);
    MUST(l->requests[0].err == PYR_EFENCED);
    MUST(strlen(l->requests[0].text) == sizeof l->requests[0].text - 1);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pyri_cursor in = pyri_cursor_of(data, size);
    bool right = take_below(&in, 2);
    size_t n = (size_t)(in.end - in.at);
    if (n > sizeof bytes - HEAD)
        return 0;
    memset(bytes, 0, 4 * HEAD);
    if (n)
        memcpy(bytes + (right ? HEAD : 0), in.at, n);
    if (right) {
        n += HEAD;
        pyri_store32(bytes + 8, (uint32_t)n);
        pyri_store32(bytes + 12, mark.number);
        pyri_store64(bytes + 16, mark.owner);
        pyri_store64(bytes, pyri_hash64(bytes + 8, n - 8));
    }
    pyri_letter *l;
    int err = pyri_letter_read(bytes, sizeof bytes, mark, &l);
    if (err < 0)
        must_refuse(err);
    else
        look_through(l), answer(l);
    free(l);
    pyri_complete c = {0};
    pyri_request r = {.c = &c};
    if ((err = pyri_answer_read(bytes, mark, &r)) < 0)
        must_refuse(err);
    else
        MUST(r.err <= 0 && strlen(r.text) < sizeof r.text);
    return 0;
}
