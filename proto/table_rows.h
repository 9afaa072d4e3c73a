/* table_rows: a pass over fields.def and parts.def that sees every row as CR_EMIT(number, members of a cr_wire_row), and every end of a
 * message as CR_TABLE(id, STRUCT, where the zeros begin, their bytes). Included before the lists. */
#define CR_FIELD(T, no, field, kind_) CR_ROW(T, no, field, field, kind_)
#define CR_FIELD_AS(T, no, field, member, kind_) CR_ROW(T, no, field, member, kind_)
#define CR_OPTIONAL(T, no, field, kind_, has) CR_ROW_WHEN(T, no, field, field, kind_, has, true)
#define CR_MEMBER(...)
#define CR_ROW(T, no, field, member, kind_) \
    CR_EMIT(no, .number = (no), .name = #field, .offset = offsetof(cr_wire_##T, member), CR_R_##kind_)
#define CR_ROW_WHEN(T, no, field, member, kind_, which, is)                                                       \
    CR_EMIT(no, .number = (no), .name = #field, .offset = offsetof(cr_wire_##T, member), CR_CHOSEN(T, which, is), \
            CR_R_##kind_)
#define CR_INNER(T, no, field, id) CR_EMIT(no, .number = (no), .name = #field, CR_R_MESSAGE(T, id))
#define CR_INNER_WHEN(T, no, field, id, which, is) \
    CR_EMIT(no, .number = (no), .name = #field, CR_CHOSEN(T, which, is), CR_R_MESSAGE(T, id))
#define CR_JOINED_WHEN(T, no, field, id, which, is) \
    CR_EMIT(no, .number = (no), .name = #field, .flags = CR_JOINS, CR_CHOSEN(T, which, is), CR_R_MESSAGE(T, id))
#define CR_INPUT(T, no, field, id, has) \
    CR_EMIT(no, .number = (no), .name = #field, .flags = CR_ALWAYS, CR_CHOSEN(T, has, true), CR_R_MESSAGE(T, id))
#define CR_ASIDE(T, no, field, limit, item, id)                                                                 \
    CR_EMIT(no, .number = (no), .name = #field, .flags = CR_IN_ASIDE, .offset = offsetof(cr_wire_aside, field), \
            CR_R_COUNTED(T, field, limit, item, id))
#define CR_ASIDE_ONE(T, no, field, id, has)                                                                     \
    CR_EMIT(no, .number = (no), .name = #field, .flags = CR_IN_ASIDE, .offset = offsetof(cr_wire_aside, field), \
            CR_CHOSEN(T, has, true), CR_R_MESSAGE(T, id))
#define CR_PASSED(T, no, field) CR_EMIT(no, .number = (no), .name = #field, CR_R_PASSED)
#define CR_PASSED_WHEN(T, no, field, which, is) \
    CR_EMIT(no, .number = (no), .name = #field, CR_CHOSEN(T, which, is), CR_R_PASSED)
#define CR_END(id, T) CR_TABLE(id, T, 0, sizeof(cr_wire_##T))
#define CR_END_OF(id, T, from, to) \
    CR_TABLE(id, T, offsetof(cr_wire_##T, from), offsetof(cr_wire_##T, to) - offsetof(cr_wire_##T, from))
#define CR_END_FROM(id, T, from) \
    CR_TABLE(id, T, offsetof(cr_wire_##T, from), sizeof(cr_wire_##T) - offsetof(cr_wire_##T, from))
