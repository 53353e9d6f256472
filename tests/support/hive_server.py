"""A Hive metastore on loopback that keeps databases, tables and locks in memory, by PyIceberg's own Thrift classes."""

from copy import deepcopy
from itertools import count
from threading import RLock, Thread

from hive_metastore import ThriftHiveMetastore
from hive_metastore.ttypes import (
    AlreadyExistsException,
    LockResponse,
    LockState,
    NoSuchObjectException,
)
from thrift.protocol import TBinaryProtocol
from thrift.server import TServer
from thrift.transport import TSocket, TTransport


class HiveServer:
    """A metastore; `url` is its address."""

    def __init__(self):
        self.state = Metastore()
        self._socket = TSocket.TServerSocket("127.0.0.1", 0)
        self._socket.listen()
        self.url = f"thrift://127.0.0.1:{self._socket.handle.getsockname()[1]}"
        self._listening = _Listening(self._socket)
        server = TServer.TThreadedServer(
            ThriftHiveMetastore.Processor(self.state),
            self._listening,
            TTransport.TBufferedTransportFactory(),
            TBinaryProtocol.TBinaryProtocolFactory(),
            daemon=True,
        )
        Thread(target=server.serve, daemon=True).start()

    def close(self):
        self._listening.is_open = False
        self._socket.close()


class _Listening:
    """A socket that listens already, and whose end is no error."""

    def __init__(self, socket):
        self._socket, self.is_open = socket, True

    def listen(self):
        pass

    def accept(self):
        try:
            return self._socket.accept()
        except OSError:
            if self.is_open:
                raise
            raise SystemExit from None  # of the serving thread

    def close(self):
        pass


class Metastore:
    """Answers to requests; locks are exclusive, and given in the order in which they were asked for."""

    def __init__(self):
        self.databases, self.tables, self.locks = {}, {}, []
        self.lose_answers = 0
        """How many changes of tables are made whose answer never arrives."""
        self._numbers, self._lock = count(1), RLock()

    def create_database(self, database):
        with self._lock:
            if database.name in self.databases:
                raise AlreadyExistsException("it exists")
            self.databases[database.name] = database

    def get_database(self, name):
        if name not in self.databases:
            raise NoSuchObjectException("there is none")
        return self.databases[name]

    def get_all_databases(self):
        return sorted(self.databases)

    def get_all_tables(self, db_name):
        return sorted(name for database, name in self.tables if database == db_name)

    def get_table(self, dbname, tbl_name):
        if (dbname, tbl_name) not in self.tables:
            raise NoSuchObjectException("there is none")
        return deepcopy(self.tables[dbname, tbl_name])

    def get_table_objects_by_name(self, dbname, tbl_names):
        return [self.get_table(dbname, name) for name in tbl_names]

    def create_table(self, tbl):
        with self._lock:
            if (tbl.dbName, tbl.tableName) in self.tables:
                raise AlreadyExistsException("it exists")
            self.tables[tbl.dbName, tbl.tableName] = tbl

    def alter_table_with_environment_context(self, dbname, tbl_name, new_tbl, environment_context):  # noqa: ARG002
        with self._lock:
            self.tables[dbname, tbl_name] = new_tbl
            if self.lose_answers:
                self.lose_answers -= 1
                raise TTransport.TTransportException(message="the connection ends")

    # --- locks ----------------------------------------------------------------------------------------------------

    def lock(self, rqst):
        part = rqst.component[0]
        with self._lock:
            number = next(self._numbers)
            self.locks.append((number, (part.dbname, part.tablename)))
        return self._answer(number)

    def check_lock(self, rqst):
        return self._answer(rqst.lockid)

    def unlock(self, rqst):
        with self._lock:
            self.locks = [held for held in self.locks if held[0] != rqst.lockid]

    def _answer(self, number):
        with self._lock:
            what = dict(self.locks)[number]
            first = next(held for held, of in self.locks if of == what)
        return LockResponse(lockid=number, state=LockState.ACQUIRED if first == number else LockState.WAITING)
