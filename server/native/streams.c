/* streams: see streams.h. Thread: the loop's. Owner: the connection. */
#include "server/native/streams.h"

#include <assert.h>
#include <stdlib.h>

enum { FIRST_ROOM = 8 };

static void drop_gaps(cr_streams *s) {
    uint32_t to = 0;
    for (uint32_t i = 0; i < s->used; i++)
        if (s->entries[i].call) s->entries[to++] = s->entries[i];
    s->used = to;
}

/* At least half of the room is free afterwards, so that a call costs O(1) on average. */
static bool make_room(cr_streams *s) {
    drop_gaps(s);
    if (s->used < s->room / 2) return true;
    uint32_t room = s->room ? s->room * 2 : FIRST_ROOM;
    cr_streams_entry *entries = realloc(s->entries, room * sizeof *entries);
    if (!entries) return s->used < s->room;
    s->entries = entries;
    s->room = room;
    return true;
}

bool cr_streams_add(cr_streams *s, uint32_t stream, void *call) {
    assert(!s->used || s->entries[s->used - 1].stream < stream);
    if (s->used == s->room && !make_room(s)) return false;
    s->entries[s->used++] = (cr_streams_entry){stream, call};
    s->open++;
    return true;
}

static cr_streams_entry *find(const cr_streams *s, uint32_t stream) {
    uint32_t low = 0, high = s->used;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (s->entries[middle].stream < stream)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->used && s->entries[low].stream == stream ? &s->entries[low] : NULL;
}

void *cr_streams_find(const cr_streams *s, uint32_t stream) {
    if (s->used && s->entries[s->used - 1].stream == stream) return s->entries[s->used - 1].call;
    const cr_streams_entry *entry = find(s, stream);
    return entry ? entry->call : NULL;
}

void cr_streams_remove(cr_streams *s, uint32_t stream) {
    cr_streams_entry *entry = find(s, stream);
    assert(entry && entry->call);
    entry->call = NULL;
    s->open--;
    while (s->used && !s->entries[s->used - 1].call) s->used--;
}

void cr_streams_free(cr_streams *s) {
    free(s->entries);
    *s = (cr_streams){0};
}
