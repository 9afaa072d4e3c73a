/* async: the connection and the calls behind cured.AsyncClient (cured/_async.py): what an event loop of Python waits for, and
 * what is to be done then. A Link's methods for the ops start a call, and process() gives back those that are done.
 *
 * Thread: with the GIL, which process() gives away while it works; nothing else may use the Link meanwhile. Owner: a Link has
 * its client, its connection and a list of the calls under way; a Call has its request, and the memory that it reads. */
#include <string.h>
#include <sys/stat.h>

#include "client/python/extension.h"

struct cr_py_async {
    PyObject_HEAD PyObject *client;
    cr_py_link *link; /* NULL: closed */
    PyObject *calls;  /* list */
};

typedef struct async_call {
    PyObject_HEAD cr_py_async *owner;
    PyObject *array, *second; /* owned; second: NULL where there is none */
    bool running;
    cr_py_request request;
    cr_py_job job;
} async_call;

PyTypeObject *cr_py_async_type;
static PyTypeObject *call_type;

/* process() works without the GIL: another thread that comes meanwhile is refused. */
static bool is_free(const cr_py_async *a) {
    if (a->link == NULL || !a->link->busy) return true;
    PyErr_SetString(PyExc_RuntimeError,
                    "another thread is at work with this AsyncClient, which belongs to one event loop");
    return false;
}

/* ---- Calls ---- */

static void call_end(async_call *c) {
    if (!c->running) return;
    c->running = false;
    cr_py_job_end(&c->job);
    cr_py_request_release(&c->request);
}

static int call_traverse(PyObject *self, visitproc visit, void *arg) {
    const async_call *c = (const async_call *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT((PyObject *)c->owner);
    Py_VISIT(c->array);
    Py_VISIT(c->second);
    return 0;
}

static int call_clear(PyObject *self) {
    async_call *c = (async_call *)self;
    call_end(c); /* it reads the arrays */
    Py_CLEAR(c->array);
    Py_CLEAR(c->second);
    return 0;
}

static void call_dealloc(PyObject *self) {
    async_call *c = (async_call *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    call_clear(self);
    Py_XDECREF((PyObject *)c->owner);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyObject *call_result(PyObject *self, PyObject *unused) {
    async_call *c = (async_call *)self;
    cured_error error;
    PyObject *answer = NULL;
    (void)unused;
    if (!is_free(c->owner)) return NULL;
    if (!c->running) return PyErr_Format(PyExc_ValueError, "the call has no answer any more");
    if (cured_call_status(c->job.call, &error) == CURED_OK)
        answer = cr_py_answer(&c->request, c->job.call);
    else
        cr_py_raise(&error);
    call_end(c);
    return answer;
}

static PyObject *call_cancel(PyObject *self, PyObject *unused) {
    async_call *c = (async_call *)self;
    (void)unused;
    if (!is_free(c->owner)) return NULL;
    if (c->running) cured_cancel(c->job.call);
    call_end(c);
    Py_RETURN_NONE;
}

/* The request's input and plan, and its call. */
static bool begin(async_call *c, cr_py_async *link) {
    cr_py_request *r = &c->request;
    r->has_results = false;
    bool good = cr_py_request_plan(r);
    if (good && r->out != NULL) {
        PyErr_SetString(PyExc_TypeError, "AsyncClient takes no out: cured.Client does");
        good = false;
    }
    if (good) good = cr_py_request_part_mask(r);
    if (good && r->plan.mask != NULL && cr_py_request_has_float_prod(r)) {
        PyErr_SetString(PyExc_TypeError,
                        "where: prod of floats goes by the places of all, and this mask has to be copied first: pass a "
                        "contiguous one");
        good = false;
    }
    if (good && (r->initial != NULL || (r->plan.mask != NULL && !cr_py_request_is_whole(r)))) {
        PyErr_SetString(PyExc_TypeError, "AsyncClient takes no initial, and no mask along an axis: cured.Client does");
        good = false;
    }
    c->job.has_extra = false;
    good = good && (cr_py_request_is_whole(r) || cr_py_answer_room(r)) &&
           cr_py_job_start(&c->job, r, &r->plan, (cr_py_client *)link->client, link->link);
    if (!good) cr_py_request_release(r);
    return good;
}

PyObject *cr_py_async_start(cr_py_async *link, const cr_py_request *request) {
    if (link->link == NULL) return PyErr_Format(PyExc_ValueError, "the client is closed");
    if (!is_free(link)) return NULL;
    async_call *c = PyObject_GC_New(async_call, call_type);
    if (c == NULL) return NULL;
    c->owner = (cr_py_async *)Py_NewRef((PyObject *)link);
    c->array = Py_NewRef(request->array);
    c->second = Py_XNewRef(request->second);
    c->request = *request;
    c->running = false;
    PyObject_GC_Track((PyObject *)c);
    c->running = begin(c, link);
    if (c->running && PyList_Append(link->calls, (PyObject *)c) == 0) return (PyObject *)c;
    Py_DECREF((PyObject *)c);
    return NULL;
}

/* ---- The link ---- */

static PyObject *link_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    cr_py_async *a = (cr_py_async *)PyType_GenericAlloc(type, 0);
    if (a == NULL) return NULL;
    a->client = PyObject_Call((PyObject *)cr_py_client_type, args, kwargs);
    a->calls = PyList_New(0);
    a->link = a->client != NULL && a->calls != NULL ? cr_py_link_take((cr_py_client *)a->client) : NULL;
    if (a->link != NULL) {
        a->link->busy = false; /* but in process() */
        a->link->watched = true;
        return (PyObject *)a;
    }
    Py_DECREF((PyObject *)a);
    return NULL;
}

static PyObject *link_close(PyObject *self, PyObject *unused) {
    cr_py_async *a = (cr_py_async *)self;
    cr_py_link *link = a->link;
    (void)unused;
    if (!is_free(a)) return NULL;
    for (Py_ssize_t i = 0; a->calls != NULL && i < PyList_Size(a->calls); i++)
        call_end((async_call *)PyList_GetItem(a->calls, i));
    a->link = NULL;
    Py_CLEAR(a->calls); /* each of them has a reference of this object */
    if (link != NULL) {
        PyObject *closed = PyObject_CallMethod(a->client, "close", NULL); /* the link is closed as it is given back */
        if (closed == NULL) PyErr_Clear();
        Py_XDECREF(closed);
        cr_py_link_give((cr_py_client *)a->client, link);
    }
    Py_RETURN_NONE;
}

static int link_traverse(PyObject *self, visitproc visit, void *arg) {
    const cr_py_async *a = (const cr_py_async *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(a->client);
    Py_VISIT(a->calls);
    return 0;
}

/* A Link that nobody closed and its calls refer to each other. */
static int link_clear(PyObject *self) {
    Py_XDECREF(link_close(self, NULL));
    return 0;
}

static void link_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    link_clear(self);
    Py_XDECREF(((cr_py_async *)self)->client);
    freefunc free_self = (freefunc)PyType_GetSlot(type, Py_tp_free);
    free_self(self);
    Py_DECREF(type);
}

static bool wants_block(const async_call *c) {
    return c->job.block != NULL && !c->job.ended && !cured_call_done(c->job.call) &&
           cured_stream_pending(c->job.call) == 0;
}

/* Moves the calls that are done from the list to another, which is given back. */
static PyObject *take_done(cr_py_async *a) {
    PyObject *done = PyList_New(0);
    for (Py_ssize_t i = PyList_Size(a->calls) - 1; done != NULL && i >= 0; i--) {
        async_call *c = (async_call *)PyList_GetItem(a->calls, i);
        if (c->running && !cured_call_done(c->job.call)) continue;
        if (PyList_Append(done, (PyObject *)c) != 0 || PyList_SetSlice(a->calls, i, i + 1, NULL) != 0) Py_CLEAR(done);
    }
    return done;
}

static PyObject *link_process(PyObject *self, PyObject *unused) {
    cr_py_async *a = (cr_py_async *)self;
    (void)unused;
    if (a->link == NULL) return PyList_New(0);
    if (!is_free(a)) return NULL;
    Py_ssize_t count = PyList_Size(a->calls), feeding = 0;
    cr_py_job **jobs = PyMem_Malloc((size_t)(count > 0 ? count : 1) * sizeof *jobs);
    if (jobs == NULL) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        async_call *c = (async_call *)PyList_GetItem(a->calls, i);
        if (c->running && wants_block(c)) jobs[feeding++] = &c->job;
    }
    a->link->busy = true;
    PyThreadState *thread = PyEval_SaveThread();
    for (Py_ssize_t i = 0; i < feeding; i++) {
        cured_error error;
        if (cr_py_job_feed(jobs[i], &error) != CURED_OK) cured_cancel(jobs[i]->call);
    }
    cured_process(a->link->conn, NULL);
    PyEval_RestoreThread(thread);
    a->link->busy = false;
    PyMem_Free(jobs);
    cr_py_kept_drop(&a->link->trash);
    return take_done(a);
}

/* (descriptor, its inode, events of poll(2), milliseconds until process() is due or -1). The inode tells a new connection with the
 * number of an old one. */
static PyObject *link_watch(PyObject *self, PyObject *unused) {
    cr_py_async *a = (cr_py_async *)self;
    struct stat s = {.st_ino = 0};
    (void)unused;
    if (a->link == NULL) return Py_BuildValue("iKii", -1, 0ULL, 0, -1);
    if (!is_free(a)) return NULL;
    int fd = cured_fd(a->link->conn), timeout = cured_timeout_ms(a->link->conn);
    if (fd >= 0) fstat(fd, &s);
    for (Py_ssize_t i = 0; i < PyList_Size(a->calls) && timeout != 0; i++) {
        const async_call *c = (const async_call *)PyList_GetItem(a->calls, i);
        if (!c->running || cured_call_done(c->job.call) || wants_block(c)) timeout = 0;
    }
    return Py_BuildValue("iKii", fd, (unsigned long long)s.st_ino, (int)cured_events(a->link->conn), timeout);
}

static PyObject *link_server(PyObject *self, void *unused) {
    cr_py_async *a = (cr_py_async *)self;
    (void)unused;
    return PyUnicode_FromString(a->link != NULL ? cured_server(a->link->conn) : "");
}

static bool make_call_type(PyObject *module) {
    static PyMethodDef methods[] = {{"result", call_result, METH_NOARGS, "Its answer, once."},
                                    {"cancel", call_cancel, METH_NOARGS, "Ends it."},
                                    {NULL, NULL, 0, NULL}};
    static PyType_Slot slots[] = {{Py_tp_dealloc, call_dealloc},
                                  {Py_tp_traverse, call_traverse},
                                  {Py_tp_clear, call_clear},
                                  {Py_tp_methods, methods},
                                  {0, NULL}};
    static PyType_Spec spec = {"cured._cured._Call", sizeof(async_call), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    call_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return call_type != NULL && PyModule_AddType(module, call_type) == 0;
}

bool cr_py_async_ready(PyObject *module) {
    static PyMethodDef own[] = {
        {"process", link_process, METH_NOARGS, "Does what can be done; the calls that are done."},
        {"watch", link_watch, METH_NOARGS, "What to wait for."},
        {"close", link_close, METH_NOARGS, "Ends the connection and its calls."},
        {NULL, NULL, 0, NULL}};
    static PyGetSetDef properties[] = {{"server", link_server, NULL, "Who answers.", NULL},
                                       {NULL, NULL, NULL, NULL, NULL}};
    PyMethodDef *methods = cr_py_ops_methods(own, CR_PY_OF_CLIENT);
    if (methods == NULL || !make_call_type(module)) return false;
    PyType_Slot slots[] = {{Py_tp_new, link_new},
                           {Py_tp_dealloc, link_dealloc},
                           {Py_tp_traverse, link_traverse},
                           {Py_tp_clear, link_clear},
                           {Py_tp_methods, methods},
                           {Py_tp_getset, properties},
                           {0, NULL}};
    PyType_Spec spec = {"cured._cured._Link", sizeof(cr_py_async), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
    cr_py_async_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return cr_py_async_type != NULL && PyModule_AddType(module, cr_py_async_type) == 0;
}
