/* A shared object without a plug-in descriptor, which the loader must refuse. */
int plugin_foreign(void);

int plugin_foreign(void)
{
    return 1;
}
