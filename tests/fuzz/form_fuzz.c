/*
 * fuzz/form_fuzz.c - forms: shape, order of halvings, cuts.
 *
 * Input: the form; what is behind it are positions and cells to ask about.
 */
#include "fuzz/fuzz.h"

#include "tree/tree.h"

/* Down from the root to a leaf, along slots that the input chooses: children
 * lie inside their parents. */
static void
walk_grid(pyri_cursor *in, const pyri_form *form)
{
    static pyri_grid g;
    uint64_t chunk[PYR_MAX_DIMS], pos[PYR_MAX_DIMS] = {0};
    pyri_box parent, child, shown;
    for (int d = 0; d < form->ndim; d++)
        chunk[d] = pyri_cursor_u16(in) + 1u;
    pyri_grid_init(&g, form, chunk);
    MUST(g.levels == pyri_grid_levels(form) && g.levels >= 1);
    MUST(g.levels <= PYRI_MAX_LEVEL);
    pyri_grid_domain(&g, g.levels, pos, &parent);
    for (int level = g.levels; level > 0; level--) {
        uint64_t below[PYR_MAX_DIMS];
        int bits = g.norder - (level - 1) * PYRI_FAN_BITS;
        unsigned slots = 1u << (bits < PYRI_FAN_BITS ? bits : PYRI_FAN_BITS);
        pyri_grid_child(&g, level, pos, pyri_cursor_u8(in) % slots, below);
        memcpy(pos, below, sizeof pos);
        pyri_grid_domain(&g, level - 1, pos, &child);
        MUST(pyri_box_contains(form->ndim, &parent, &child));
        if (pyri_grid_shown(&g, level - 1, pos, &shown))
            MUST(pyri_box_contains(form->ndim, &child, &shown));
        parent = child;
    }
    uint64_t code[PYRI_CODE_WORDS];
    pyri_grid_code(&g, pos, code);
    for (int level = 1; level <= g.levels; level++)
        MUST(pyri_grid_slot(code, level) < PYRI_FAN);
}

static void
use(pyri_cursor *in, const pyri_form *form)
{
    uint64_t clip[PYR_MAX_DIMS], shape[PYR_MAX_DIMS], chunk[PYR_MAX_DIMS];
    pyri_form copy;
    pyri_form_clip(form, pyri_cursor_u64(in), clip);
    for (int d = 0; d < form->ndim; d++) {
        MUST(clip[d] <= form->shape[d]);
        shape[d] = pyri_cursor_u16(in);
        chunk[d] = pyri_cursor_u8(in) + 1u;
    }
    if (pyri_form_fits(form, shape, chunk) < 0)
        return;
    MUST(pyri_form_copy(&copy, form) == 0);
    MUST(pyri_form_change(&copy, UINT64_MAX, shape, chunk) == 0);
    pyri_form_clip(&copy, 0, clip);
    for (int d = 0; d < form->ndim; d++)
        MUST(clip[d] <= shape[d]);
    pyri_form_fini(&copy);
}

static void
must_be_countable(const pyri_form *form)
{
    uint64_t cells = 1;
    for (int d = 0; d < form->ndim; d++)
        if (form->shape[d])
            MUST(!__builtin_mul_overflow(cells, form->shape[d], &cells));
    MUST(cells < UINT64_MAX);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pyri_cursor in = pyri_cursor_of(data, size), back;
    static pyri_form form, again; /* large */
    pyri_buf first = {0}, second = {0};
    int err = pyri_form_decode(&in, &form);
    if (err < 0) {
        must_refuse(err);
        return 0;
    }
    must_be_countable(&form);
    pyri_form_encode(&form, &first);
    back = pyri_cursor_of(first.data, first.size);
    MUST(pyri_form_decode(&back, &again) == 0 && back.at == back.end);
    pyri_form_encode(&again, &second);
    must_be_same(&first, &second);
    use(&in, &form);
    walk_grid(&in, &form);
    pyri_form_fini(&form);
    pyri_form_fini(&again);
    pyri_buf_fini(&first);
    pyri_buf_fini(&second);
    return 0;
}
