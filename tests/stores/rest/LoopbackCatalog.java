package org.apache.iceberg.rest;

import java.io.FileReader;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;

/**
 * Serves a catalog over Iceberg's REST protocol, by the project's own test fixture, to this machine alone.
 *
 * <p>Its arguments are a port and a file of properties. It is in the fixture's package, whose classes are not public.
 */
public final class LoopbackCatalog {
  private LoopbackCatalog() {}

  public static void main(String[] arguments) throws Exception {
    Properties given = new Properties();
    try (FileReader file = new FileReader(arguments[1])) {
      given.load(file);
    }
    Map<String, String> properties = new HashMap<>();
    given.forEach((name, value) -> properties.put((String) name, (String) value));
    RESTCatalogServer.CatalogContext context =
        new RESTCatalogServer.CatalogContext(
            CatalogUtil.buildIcebergCatalog("served", properties, new Configuration()), properties);
    ServletContextHandler handler = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
    handler.addServlet(new ServletHolder(new RESTCatalogServlet(new RESTServerCatalogAdapter(context))), "/*");
    Server server = new Server(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])));
    server.setHandler(handler);
    server.start();
    server.join();
  }
}
