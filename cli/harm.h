/*
 * cli/harm.h - one line, or one JSON object, for each thing that is harmed.
 */
#ifndef CLI_HARM_H
#define CLI_HARM_H

#include "cmd.h"

typedef struct harm_list {
    const args *args;
    json json; /* open, if that is wanted: "harm" first, the rest follows */
    progress bar;
    bool begun; /* the bar */
} harm_list;

int harm_begin(harm_list *h);
/* Tell the library to report here. */
void harm_attach(harm_list *h, pyr_verify_spec *spec);
void harm_end(harm_list *h);

#endif
